// Hover over a thumbnail to look around; without a mouse, visible thumbnails move by themselves.
const isStill = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
const hasMouse = window.matchMedia("(hover: hover)").matches;
const looks = [...document.querySelectorAll(".look")];

const show = (look, part) => {
  const count = Number(look.dataset.frames);
  const frame = Math.min(Math.max(Math.floor(part * count), 0), count - 1);
  look.style.setProperty("--frame", frame);
};

for (const look of looks) {
  look.style.setProperty("--frames", look.dataset.frames);
  show(look, 0.5);
  const card = look.closest("a");
  card.addEventListener("pointermove", (event) => {
    const { left, width } = card.getBoundingClientRect();
    if (event.pointerType === "mouse") show(look, (event.clientX - left) / width);
  });
  card.addEventListener("pointerleave", () => show(look, 0.5));
}

if (!hasMouse && !isStill) {
  const seen = new Set();
  const watch = new IntersectionObserver((changes) => {
    for (const { target, isIntersecting } of changes)
      if (isIntersecting) seen.add(target);
      else seen.delete(target);
  });
  looks.forEach((look) => watch.observe(look));
  const step = (now) => {
    for (const look of seen) show(look, 0.5 + 0.5 * Math.sin(now / 900));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}
