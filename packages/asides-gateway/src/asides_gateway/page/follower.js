// @ts-check
// Scrolling: follow what is written only while the reader is at the bottom; otherwise nothing moves.

import { button, show } from "./dom.js";

const NEAR = 56;

export class Follower {
  /** @param {HTMLElement} box what scrolls @param {() => void} onTop called near the top */
  constructor(box, onTop) {
    this.box = box;
    this.following = true;
    this.jump = button("plainbutton.jump", "To the newest", () => this.toEnd(), { hidden: true });
    this.last = 0;
    box.addEventListener("scroll", () => {
      // Only the reader goes up; the page itself goes down.
      if (this.distance < NEAR) this.following = true;
      else if (box.scrollTop < this.last - 2) this.following = false;
      this.last = box.scrollTop;
      show(this.jump, !this.following && this.distance > box.clientHeight / 2);
      if (box.scrollTop < 600) onTop();
    }, { passive: true });
    new ResizeObserver(() => this.follow()).observe(box);
  }

  get distance() {
    return this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight;
  }

  /** Something was written. */
  follow() {
    if (this.following) {
      this.box.scrollTop = this.box.scrollHeight;
      this.last = this.box.scrollTop;
    } else show(this.jump, this.distance > this.box.clientHeight / 2);
  }

  toEnd() {
    this.following = true;
    this.follow();
    show(this.jump, false);
  }

  /** Change the content above without moving what is read. @param {Element} list whose first child on the screen stays @param {() => void} change */
  keep(list, change) {
    const { top } = this.box.getBoundingClientRect();
    const anchor = [...list.children].find((each) => each.getBoundingClientRect().bottom > top);
    const before = anchor?.getBoundingClientRect().top ?? 0;
    // The browser keeps its own anchor, but not at the very top; both together would move twice.
    this.box.style.overflowAnchor = "none";
    change();
    const settle = () => {
      if (anchor) this.box.scrollTop += anchor.getBoundingClientRect().top - before;
      this.last = this.box.scrollTop;
    };
    settle();
    const moved = this.box.scrollTop;
    // What was drawn just now gets its real height with the next frame.
    requestAnimationFrame(() => requestAnimationFrame(() => {
      if (Math.abs(this.box.scrollTop - moved) < 1) settle();
      this.box.style.overflowAnchor = "";
    }));
  }
}
