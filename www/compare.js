// The slider between the picture before and after: a range input as wide as the picture.

export function compare(stage, slider) {
  const update = () => {
    stage.style.setProperty('--split', `${slider.value}%`);
    slider.setAttribute('aria-valuetext', `${Math.round(slider.value)} percent unfiltered`);
    stage.classList.toggle('only-after', slider.value < 12);
    stage.classList.toggle('only-before', slider.value > 88);
  };
  slider.addEventListener('input', update);
  update();
}
