// @ts-check
// Sets the chosen theme before anything is drawn, so that the page does not flash. A plain script, run first.
{
  let theme = null;
  try {
    theme = localStorage.getItem("asides.theme");
  } catch {
    // A browser without storage follows the system.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}
