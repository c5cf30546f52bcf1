// @ts-check
// The chat.

/** @param {HTMLElement} root @param {import("./app.js").Shell} shell @param {string} id @returns {import("./app.js").View} */
export function mountChat(root, shell, id) {
  root.textContent = "";
  void shell;
  return { id, unmount: () => {} };
}
