import { useEffect, useMemo, useRef, useState, type ReactElement } from 'react';
import { createRoot } from 'react-dom/client';
import { useDevice } from './device.js';
import { planesOf, sharpened, type Settings } from './filter.js';
import { newest } from './newest.js';
import { rings } from './picture.js';

const [WIDTH, HEIGHT] = [512, 512];

interface SliderProps {
  readonly name: string;
  readonly value: number;
  readonly max: number;
  readonly onChange: (value: number) => void;
}

function Slider({ name, value, max, onChange }: SliderProps): ReactElement {
  return (
    <p>
      <label>
        {name} <input type="range" id={name} min="0.5" max={max} step="0.5" value={value}
          onChange={(event) => onChange(Number(event.target.value))} /> {value}
      </label>
    </p>
  );
}

function App(): ReactElement {
  const [state, setState] = useState('');
  const device = useDevice(setState);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [radius, setRadius] = useState(2);
  const [amount, setAmount] = useState(1);
  const picture = useMemo(() => rings(WIDTH, HEIGHT), []);
  const planes = useMemo(() => device && planesOf(device, picture), [device, picture]);

  const draw = useMemo(() => device && planes && newest(async (settings: Settings) => {
    const image = await sharpened(device, planes, settings);
    canvas.current?.getContext('2d')?.putImageData(image, 0, 0);
    setState(`${device.backend}: radius ${settings.radius}, amount ${settings.amount}`);
  }), [device, planes]);

  useEffect(() => {
    draw?.({ radius, amount }).catch((error: unknown) => setState(String(error)));
  }, [draw, radius, amount]);

  return (
    <>
      <canvas ref={canvas} width={WIDTH} height={HEIGHT} />
      <Slider name="radius" value={radius} max={8} onChange={setRadius} />
      <Slider name="amount" value={amount} max={4} onChange={setAmount} />
      <output id="state">{state}</output>
    </>
  );
}

const root = document.querySelector('#root');
if (root) {
  createRoot(root).render(<App />);
}
