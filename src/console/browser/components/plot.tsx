/** Plots over time. */
import { useEffect, useRef, useState } from 'preact/hooks';
import UPlot from 'uplot';

export interface Series {
  readonly label: string;
  /** A value for each time of the plot; `null` for a time without a value. */
  readonly values: readonly (number | null)[];
}

interface PlotProps {
  readonly title: string;
  /** Milliseconds since the epoch, ascending. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  /** Whether each value is about a whole day, in UTC. */
  readonly isDaily?: boolean;
  /** Whether the values are bytes, so that the axis has powers of two. */
  readonly isBytes?: boolean;
}

const height = 170;

/** Names of the colors of the series in the style sheet. */
const colors = ['--series-1', '--series-2'];

/** Draws one or two series over time. The legend shows the newest values, or the values under the pointer. */
export function Plot({ title, times, series, format, isDaily = false, isBytes = false }: PlotProps) {
  const container = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | undefined>(undefined);
  /** Index of the time under the pointer; null while the pointer is elsewhere. */
  const [pointed, setPointed] = useState<number | null>(null);
  const scheme = useColorScheme();
  const key = series.map(({ label }) => label).join('|');
  const data = [times.map((time) => time / 1000), ...series.map(({ values }) => values)] as UPlot.AlignedData;

  // The values are not among the inputs of this effect: the effect below draws new values in the same plot.
  useEffect(() => {
    const element = container.current;
    if (element === null) return undefined;
    const labels = series.map(({ label }) => label);
    const options = optionsFor(element, { labels, format, isDaily, isBytes, setPointed });
    const uplot = new UPlot(options, data, element);
    plot.current = uplot;
    const observer = new ResizeObserver(() => uplot.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      uplot.destroy();
      plot.current = undefined;
    };
  }, [key, scheme, isDaily, isBytes]);

  useEffect(() => plot.current?.setData(data));

  const shown = pointed ?? times.length - 1;
  const valueAt = ({ values }: Series) => {
    const value = values[shown];
    return value === null || value === undefined ? '–' : format(value);
  };
  const summary = series.map((line) => `${line.label} ${valueAt(line)}`).join(', ');
  return (
    <figure class="plot">
      <figcaption>
        <h2>{title}</h2>
        <ul class="legend">
          {series.map((line, index) => (
            <li key={line.label}>
              <span class={`swatch series-${index + 1}`} aria-hidden="true" />
              {series.length > 1 && `${line.label} `}
              <strong>{valueAt(line)}</strong>
            </li>
          ))}
        </ul>
      </figcaption>
      <div ref={container} role="img" aria-label={`Plot of ${title}: ${summary}`} />
    </figure>
  );
}

interface DrawingOptions {
  readonly labels: readonly string[];
  readonly format: (value: number) => string;
  readonly isDaily: boolean;
  readonly isBytes: boolean;
  readonly setPointed: (index: number | null) => void;
}

function optionsFor(
  element: HTMLElement,
  { labels, format, isDaily, isBytes, setPointed }: DrawingOptions,
): UPlot.Options {
  const soft = colorOf(element, '--soft');
  const axis = {
    stroke: soft,
    font: '12px system-ui',
    grid: { stroke: colorOf(element, '--edge'), width: 1 },
    ticks: { show: false },
  };
  return {
    width: Math.max(element.clientWidth, 100),
    height,
    ...(isDaily && { tzDate: (seconds: number) => UPlot.tzDate(new Date(seconds * 1000), 'UTC') }),
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    scales: {
      x: { range: ({ data: [times] }, first, last) => periodOf(times.length, first, last, isDaily) },
      y: { range: (_plot, _least, greatest) => [0, greatest > 0 ? greatest * 1.1 : 1] },
    },
    axes: [
      {
        ...axis,
        space: 80,
        values: (_plot, splits) =>
          splits.map((seconds) => (isDaily ? dayLabel : timeLabel).format(seconds * 1000)),
      },
      {
        ...axis,
        size: 70,
        space: 32,
        ...(isBytes && { incrs: byteSteps }),
        values: (_plot, splits) => splits.map((value) => format(value)),
      },
    ],
    series: [
      {},
      ...labels.map((label, index) => {
        const color = colorOf(element, colors[index] ?? '--series-1');
        return {
          label,
          stroke: color,
          width: 2,
          points: { show: isDaily, size: 5, fill: color },
          ...(index === 0 && { fill: `color-mix(in srgb, ${color} 12%, transparent)` }),
        };
      }),
    ],
    hooks: { setCursor: [({ cursor }) => setPointed(cursor.idx ?? null)] },
  };
}

const dayLabel = new Intl.DateTimeFormat('en', { month: 'short', day: 'numeric', timeZone: 'UTC' });
const timeLabel = new Intl.DateTimeFormat('en', { timeStyle: 'medium', hourCycle: 'h23' });

/** Steps of an axis with bytes: powers of two from one byte to 32 TiB. */
const byteSteps = Array.from({ length: 46 }, (_, exponent) => 2 ** exponent);

/** Returns the period that a plot shows; a single time is in the middle of it. Times are in seconds. */
function periodOf(count: number, first: number, last: number, isDaily: boolean): [number, number] {
  if (count > 1) return [first, last];
  const around = isDaily ? 86_400 : 30;
  return [first - around, first + around];
}

/** Returns the value of a color of the style sheet in the current color scheme. */
function colorOf(element: HTMLElement, name: string): string {
  element.style.color = `var(${name})`;
  const { color } = getComputedStyle(element);
  element.style.color = '';
  return color;
}

/** Returns the color scheme of the browser. */
function useColorScheme(): 'light' | 'dark' {
  const query = '(prefers-color-scheme: dark)';
  const [isDark, setDark] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const changed = () => setDark(list.matches);
    list.addEventListener('change', changed);
    return () => list.removeEventListener('change', changed);
  }, []);
  return isDark ? 'dark' : 'light';
}
