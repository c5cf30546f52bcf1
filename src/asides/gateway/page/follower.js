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

  /** Change what stands above without moving what is read. @param {Element | null} anchor an element that stays @param {() => void} change */
  keep(anchor, change) {
    const before = anchor?.getBoundingClientRect().top ?? 0;
    this.box.style.overflowAnchor = "none";
    change();
    if (anchor) this.box.scrollTop += anchor.getBoundingClientRect().top - before;
    this.last = this.box.scrollTop;
    requestAnimationFrame(() => { this.box.style.overflowAnchor = ""; });
  }
}
