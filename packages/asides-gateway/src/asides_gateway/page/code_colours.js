// @ts-check
// Colours for finished code, by the highlights of the browser: the text stays as it is, and no element is added.
// One small reader for all languages: notes, texts, numbers, and words that many languages share.

const WORDS = new Set(("abstract and as async await begin bool boolean break case catch char class const continue def default defer del " +
  "delete do done double elif else elsif end enum esac except export extends extern false fi final finally float fn for from func function " +
  "global go goto if impl implements import in include instanceof int interface is lambda let local long loop match mod module mut namespace " +
  "new nil none not null of operator or package pass private proc protected pub public raise ref require return select self short signed " +
  "sizeof static string struct super switch template then this throw throws trait true try type typedef typeof union unless unsigned until " +
  "use using val var virtual void volatile when where while with yield None True False NULL SELECT FROM WHERE INSERT INTO UPDATE DELETE " +
  "CREATE TABLE JOIN LEFT RIGHT INNER OUTER ON GROUP ORDER BY HAVING LIMIT VALUES SET AND OR NOT AS").split(" "));
// In these, "#" begins a note; elsewhere it means other things.
const HASH_NOTES = /^(?:py\w*|sh|bash|zsh|shell|console|rb|ruby|perl|r|ya?ml|toml|make\w*|docker\w*|conf|ini|elixir|nix|tf|hcl)$/;
const DASH_NOTES = /^(?:\w*sql|lua|haskell|hs|ada|elm)$/;
const NO_CODE = /^(?:text|txt|plain|output|log|markdown|md|)$/;
const TOKEN = /\/\*|\/\/|<!--|--|#|"""|'''|["'`]|\d[\w.]*|[A-Za-z_$][\w$]*/g;
const LONGEST = 100_000;
const MOST = 8_000;

/** @type {Record<string, any>} */
const highlights = {};
let held = 0;

/** @param {string} kind */
function findHighlight(kind) {
  const { Highlight } = /** @type {any} */ (window);
  highlights[kind] ??= new Highlight();
  /** @type {any} */ (CSS).highlights.set(`code-${kind}`, highlights[kind]);
  return highlights[kind];
}

/** Colour the code in an element whose text is complete. @param {HTMLElement} box @param {string} language */
export function colourCode(box, language) {
  const name = language.toLowerCase();
  const text = box.textContent ?? "";
  if (NO_CODE.test(name) || text.length > LONGEST || !("highlights" in CSS)) return;
  /** @type {[Text, number][]} */
  const nodes = [];
  const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
  for (let at = 0, node = walker.nextNode(); node; node = walker.nextNode()) {
    nodes.push([/** @type {Text} */ (node), at]);
    at += /** @type {Text} */ (node).data.length;
  }
  let index = 0;
  /** @param {number} place @returns {[Text, number]} */
  const find = (place) => {
    while (index + 1 < nodes.length && nodes[index + 1][1] <= place) index += 1;
    return [nodes[index][0], place - nodes[index][1]];
  };
  for (const [kind, start, end] of readTokens(text, name)) {
    if (held >= MOST) dropOld();
    if (held >= MOST) return;
    const [first, from] = find(start);
    const [last, to] = find(end - 1);
    findHighlight(kind).add(new StaticRange({ startContainer: first, startOffset: from, endContainer: last, endOffset: to + 1 }));
    held += 1;
  }
}

/** Forget the ranges of code that is no longer on the page. */
function dropOld() {
  for (const highlight of Object.values(highlights)) {
    for (const range of highlight) {
      if (range.startContainer.isConnected) continue;
      highlight.delete(range);
      held -= 1;
    }
  }
}

/**
 * What is worth a colour, in order: its kind, and where it begins and ends.
 * @param {string} text @param {string} language @returns {Generator<[string, number, number]>}
 */
export function* readTokens(text, language) {
  const token = new RegExp(TOKEN);
  for (let found = token.exec(text); found; found = token.exec(text)) {
    const sign = found[0];
    const start = found.index;
    let kind = "";
    let end = start + sign.length;
    if (sign === "/*" || sign === "<!--") {
      kind = "note";
      end = findEnd(text, sign === "/*" ? "*/" : "-->", end);
    } else if ((sign === "//" && text[start - 1] !== ":") || (sign === "#" && HASH_NOTES.test(language)) || (sign === "--" && DASH_NOTES.test(language))) {
      kind = "note";
      const line = text.indexOf("\n", end);
      end = line < 0 ? text.length : line;
    } else if (sign === '"""' || sign === "'''") {
      kind = "text";
      end = findEnd(text, sign, end);
    } else if (/^["'`]$/.test(sign)) {
      end = findQuote(text, sign, end);
      if (end > 0) kind = "text";
      else end = start + 1;
    } else if (/^\d/.test(sign)) kind = "number";
    else if (WORDS.has(sign)) kind = "word";
    token.lastIndex = end;
    if (kind) yield [kind, start, end];
  }
}

/** @param {string} text @param {string} mark @param {number} from */
function findEnd(text, mark, from) {
  const end = text.indexOf(mark, from);
  return end < 0 ? text.length : end + mark.length;
}

/** Where a text in quotes ends; 0: it does not on its line. @param {string} text @param {string} quote @param {number} from */
function findQuote(text, quote, from) {
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === quote) return at + 1;
    else if (text[at] === "\n" && quote !== "`") return 0;
  }
  return 0;
}
