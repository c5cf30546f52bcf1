// @ts-check
// Formulas: the TeX that models write, as MathML, which browsers draw themselves. What is not known is shown as it is written.

const MATHML = "http://www.w3.org/1998/Math/MathML";
const LETTERS = ("alpha α beta β gamma γ delta δ epsilon ϵ varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι kappa κ lambda λ mu μ nu ν xi ξ pi π " +
  "rho ρ sigma σ varsigma ς tau τ upsilon υ phi ϕ varphi φ chi χ psi ψ omega ω Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Upsilon Υ " +
  "Phi Φ Psi Ψ Omega Ω infty ∞ partial ∂ nabla ∇ emptyset ∅ varnothing ∅ ell ℓ hbar ℏ Re ℜ Im ℑ aleph ℵ degree ° ldots … dots … cdots ⋯ vdots ⋮ ddots ⋱ top ⊤ bot ⊥").split(" ");
const SIGNS = ("times × cdot ⋅ div ÷ pm ± mp ∓ ast ∗ star ⋆ circ ∘ bullet ∙ oplus ⊕ otimes ⊗ wedge ∧ land ∧ vee ∨ lor ∨ cap ∩ cup ∪ setminus ∖ " +
  "le ≤ leq ≤ ge ≥ geq ≥ ne ≠ neq ≠ equiv ≡ approx ≈ sim ∼ simeq ≃ cong ≅ propto ∝ ll ≪ gg ≫ in ∈ notin ∉ ni ∋ subset ⊂ subseteq ⊆ supset ⊃ supseteq ⊇ " +
  "to → rightarrow → leftarrow ← gets ← leftrightarrow ↔ Rightarrow ⇒ implies ⟹ Leftarrow ⇐ Leftrightarrow ⇔ iff ⟺ mapsto ↦ longrightarrow ⟶ uparrow ↑ downarrow ↓ " +
  "forall ∀ exists ∃ neg ¬ lnot ¬ mid ∣ parallel ∥ perp ⊥ angle ∠ therefore ∴ because ∵ langle ⟨ rangle ⟩ lfloor ⌊ rfloor ⌋ lceil ⌈ rceil ⌉ vert | Vert ‖ " +
  "lbrace { rbrace } prime ′ colon : backslash \\ sum ∑ prod ∏ int ∫ iint ∬ oint ∮ bigcup ⋃ bigcap ⋂ coprod ∐").split(" ");
const LARGE = new Set(["∑", "∏", "⋃", "⋂", "∐"]);
const NAMES = new Set("sin cos tan cot sec csc sinh cosh tanh arcsin arccos arctan log ln lg exp min max sup inf lim det dim ker deg gcd arg Pr mod".split(" "));
const BELOW = new Set(["lim", "min", "max", "sup", "inf", "det", "gcd"]);
const SPACES = /** @type {Record<string, string>} */ ({ ",": "0.17em", ":": "0.22em", ";": "0.28em", "!": "-0.17em", " ": "0.25em", quad: "1em", qquad: "2em", enspace: "0.5em", thinspace: "0.17em" });
const FONTS = /** @type {Record<string, string>} */ ({ mathrm: "normal", mathbf: "bold", bm: "bold", boldsymbol: "bold", mathit: "italic", mathsf: "sans-serif", mathtt: "monospace", mathbb: "double-struck", mathcal: "script", mathfrak: "fraktur", mathscr: "script" });
const DOUBLE = /** @type {Record<string, string>} */ ({ C: "ℂ", H: "ℍ", N: "ℕ", P: "ℙ", Q: "ℚ", R: "ℝ", Z: "ℤ", E: "𝔼" });
const ACCENTS = /** @type {Record<string, string>} */ ({ hat: "^", widehat: "^", bar: "¯", overline: "¯", vec: "→", tilde: "~", widetilde: "~", dot: "˙", ddot: "¨" });
const GRIDS = /** @type {Record<string, [string, string]>} */ ({ matrix: ["", ""], pmatrix: ["(", ")"], bmatrix: ["[", "]"], Bmatrix: ["{", "}"], vmatrix: ["|", "|"], Vmatrix: ["‖", "‖"], cases: ["{", ""], aligned: ["", ""], align: ["", ""], "align*": ["", ""], array: ["", ""], gathered: ["", ""], split: ["", ""] });
const TOKEN = /\\(?:[A-Za-z]+\*?|[^])|\d+(?:\.\d+)?|\s+|[^]/gu;
const DEEPEST = 40;
const LONGEST = 4000;

const letters = pair(LETTERS);
const signs = pair(SIGNS);

/** @param {string[]} words @returns {Map<string, string>} */
function pair(words) {
  const map = new Map();
  for (let at = 0; at + 1 < words.length; at += 2) map.set(words[at], words[at + 1]);
  return map;
}

/** @param {string} tag @param {Record<string, string>} attributes @param {...(Node | string)} children */
function make(tag, attributes, ...children) {
  const element = document.createElementNS(MATHML, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** @param {string} tex @param {boolean} block whether it is on a line of its own @returns {Element} */
export function makeFormula(tex, block) {
  const math = make("math", block ? { display: "block" } : {}, ...new Reader(tex.slice(0, LONGEST)).readAll());
  math.setAttribute("aria-label", tex);
  return math;
}

class Reader {
  /** @param {string} tex */
  constructor(tex) {
    this.tokens = tex.match(TOKEN) ?? [];
    this.at = 0;
    this.depth = 0;
  }

  readAll() {
    const all = [];
    while (this.at < this.tokens.length) {
      all.push(...this.readUntil(() => false));
      if (this.at < this.tokens.length) this.at += 1;
    }
    return all;
  }

  get next() {
    return this.tokens[this.at];
  }

  skipBlanks() {
    while (this.next !== undefined && /^\s/.test(this.next)) this.at += 1;
  }

  /** @param {(token: string) => boolean} ends @returns {Element[]} */
  readUntil(ends) {
    /** @type {Element[]} */
    const items = [];
    for (;;) {
      this.skipBlanks();
      const token = this.next;
      if (token === undefined || ends(token) || token === "}") return items;
      if (token === "^" || token === "_" || token === "'") items.push(this.readScripts(items.pop() ?? make("mrow", {})));
      else items.push(this.readItem());
    }
  }

  /** @param {Element[]} items */
  row(items) {
    return items.length === 1 ? items[0] : make("mrow", {}, ...items);
  }

  /** One item, or a group in braces. @returns {Element} */
  readItem() {
    this.skipBlanks();
    const token = this.next;
    if (token === undefined) return make("mrow", {});
    this.at += 1;
    if (this.depth > DEEPEST) return make("mtext", {}, token);
    this.depth += 1;
    const item = this.readToken(token);
    this.depth -= 1;
    return item;
  }

  /** @param {string} token @returns {Element} */
  readToken(token) {
    if (token === "{") {
      const inside = this.readUntil((each) => each === "}");
      this.at += 1;
      return this.row(inside);
    }
    if (/^\d/.test(token)) return make("mn", {}, token);
    if (token.startsWith("\\") && token.length > 1) return this.readCommand(token.slice(1));
    if (/^\p{L}$/u.test(token)) return make("mi", {}, token);
    return make("mo", "()[]|".includes(token) ? { stretchy: "false" } : {}, token === "-" ? "−" : token === "*" ? "∗" : token);
  }

  /** @param {string} name @returns {Element} */
  readCommand(name) {
    if (name === "frac" || name === "dfrac" || name === "tfrac") return make("mfrac", {}, this.readItem(), this.readItem());
    if (name === "binom") return this.fence("(", make("mfrac", { linethickness: "0" }, this.readItem(), this.readItem()), ")");
    if (name === "sqrt") return this.readRoot();
    if (name === "left") return this.readFenced();
    if (name === "begin") return this.readGrid();
    if (name === "text" || name === "textbf" || name === "textit" || name === "mbox" || name === "operatorname") {
      const words = this.readRaw();
      return make(name === "operatorname" ? "mi" : "mtext", {}, words);
    }
    if (name === "boxed") return make("menclose", { notation: "box" }, this.readItem());
    if (name === "not") return make("mo", {}, `${this.readItem().textContent}̸`);
    if (FONTS[name]) return this.setFont(this.readItem(), FONTS[name]);
    if (ACCENTS[name]) return make("mover", { accent: "true" }, this.readItem(), make("mo", { stretchy: String(/over|wide/.test(name)) }, ACCENTS[name]));
    if (name === "underline") return make("munder", {}, this.readItem(), make("mo", {}, "_"));
    if (SPACES[name]) return make("mspace", { width: SPACES[name] });
    if (NAMES.has(name)) return make("mi", { mathvariant: "normal" }, name);
    const letter = letters.get(name);
    if (letter) return make("mi", /^[A-Z]/.test(name) ? { mathvariant: "normal" } : {}, letter);
    const sign = signs.get(name);
    if (sign) return make("mo", {}, sign);
    if (/^[{}$%#&_]$/.test(name)) return make("mo", {}, name);
    if (/^(?:displaystyle|textstyle|limits|nolimits|bigl?|bigr?|Bigl?|Bigr?|biggl?|biggr?|label|nonumber|right|end|hline|\\)$/.test(name)) return make("mrow", {});
    return make("mtext", {}, `\\${name}`);
  }

  /** The text in braces, as it is. */
  readRaw() {
    this.skipBlanks();
    if (this.next !== "{") return this.tokens[this.at++] ?? "";
    let text = "";
    let open = 0;
    for (; this.at < this.tokens.length; this.at += 1) {
      const token = this.tokens[this.at];
      if (token === "{") open += 1;
      else if (token === "}") open -= 1;
      else text += token;
      if (open === 0) break;
    }
    this.at += 1;
    return text;
  }

  readRoot() {
    this.skipBlanks();
    if (this.next !== "[") return make("msqrt", {}, this.readItem());
    this.at += 1;
    const degree = this.row(this.readUntil((token) => token === "]"));
    this.at += 1;
    return make("mroot", {}, this.readItem(), degree);
  }

  /** @param {string} left @param {Element} inside @param {string} right */
  fence(left, inside, right) {
    const mark = (/** @type {string} */ text) => (text ? [make("mo", { stretchy: "true" }, text)] : []);
    return make("mrow", {}, ...mark(left), inside, ...mark(right));
  }

  readMark() {
    this.skipBlanks();
    const token = this.tokens[this.at++] ?? "";
    if (token === ".") return "";
    return token.startsWith("\\") ? signs.get(token.slice(1)) ?? token.slice(1) : token;
  }

  readFenced() {
    const left = this.readMark();
    const inside = this.row(this.readUntil((token) => token === "\\right"));
    if (this.next === "\\right") this.at += 1;
    return this.fence(left, inside, this.readMark());
  }

  readGrid() {
    const name = this.readRaw();
    const known = GRIDS[name];
    if (name === "array") this.readRaw();
    /** @type {Element[][][]} */
    const rows = [[[]]];
    while (this.next !== undefined && this.next !== "\\end") {
      rows[rows.length - 1][rows[rows.length - 1].length - 1].push(...this.readUntil((token) => token === "&" || token === "\\\\" || token === "\\end"));
      if (this.next === "&") rows[rows.length - 1].push([]);
      else if (this.next === "\\\\") rows.push([[]]);
      else if (this.next === "\\end" || this.next === undefined) break;
      this.at += 1;
    }
    this.at += 1;
    this.readRaw();
    const isAligned = /^(?:align|aligned|split|cases)/.test(name);
    const table = make("mtable", { class: isAligned ? "aligned" : "" }, ...rows.filter((row) => row.some((cell) => cell.length)).map((row) => make("mtr", {}, ...row.map((cell) => make("mtd", {}, ...cell)))));
    return known ? this.fence(known[0], table, known[1]) : table;
  }

  /** @param {Element} item @param {string} font */
  setFont(item, font) {
    for (const each of item.tagName === "mi" ? [item] : item.querySelectorAll("mi")) {
      const text = each.textContent ?? "";
      if (font === "double-struck" && DOUBLE[text]) each.textContent = DOUBLE[text];
      else if (font === "bold") each.setAttribute("class", "bold");
      each.setAttribute("mathvariant", "normal");
    }
    if (font === "bold") for (const each of item.querySelectorAll("mn")) each.setAttribute("class", "bold");
    return item;
  }

  /** The parts above and below an item. @param {Element} base */
  readScripts(base) {
    /** @type {Element | null} */
    let below = null;
    /** @type {Element | null} */
    let above = null;
    for (;;) {
      this.skipBlanks();
      if (this.next === "_" && !below) {
        this.at += 1;
        below = this.readItem();
      } else if (this.next === "^" && !above) {
        this.at += 1;
        above = this.readItem();
      } else if (this.next === "'" && !above) {
        let primes = "";
        while (this.next === "'") {
          primes += "′";
          this.at += 1;
        }
        above = make("mo", {}, primes);
      } else break;
    }
    if (!below && !above) {
      this.at += 1;
      return base;
    }
    const text = base.textContent ?? "";
    const stacks = LARGE.has(text) || BELOW.has(text);
    if (below && above) return make(stacks ? "munderover" : "msubsup", {}, base, below, above);
    if (below) return make(stacks ? "munder" : "msub", {}, base, below);
    return make(stacks ? "mover" : "msup", {}, base, /** @type {Element} */ (above));
  }
}
