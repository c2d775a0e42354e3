import { printable } from '../printable.ts';
import type { AdministrationFlags } from './server-choice.ts';

/** Writes results: tables and details for terminals, JSON for scripts. */
export interface Output {
  /** Whether to write JSON. */
  readonly json: boolean;
  write(text: string): void;
}

export const outputOf = ({ json, context }: AdministrationFlags): Output => ({
  json: json === true,
  write: (text) => void context.stdout.write(text),
});

type Row = Readonly<Record<string, unknown>>;

/** A column of a table. */
export interface Column {
  readonly title: string;
  readonly value: (row: Row) => string;
  /** Whether values are aligned to the right. */
  readonly isNumber?: boolean;
  /** Maximum number of characters; longer values are cut. Absent: values are shown whole. */
  readonly maxLength?: number;
}

/**
 * Writes a list page by page, so that long lists need little memory: as a table whose columns are as wide as the first
 * page needs, or as an array of JSON.
 * @param empty printed instead of a table without rows
 */
export async function writeList(
  output: Output,
  columns: readonly Column[],
  pages: AsyncIterable<readonly Row[]> | Iterable<readonly Row[]>,
  empty: string,
): Promise<void> {
  let widths: readonly number[] | undefined;
  let count = 0;
  for await (const rows of pages) {
    if (output.json) {
      for (const row of rows) output.write(`${count++ === 0 ? '[\n' : ',\n'}${JSON.stringify(row)}`);
      continue;
    }
    if (rows.length === 0) continue;
    const cells = rows.map((row) => columns.map((shown) => cellOf(shown, row)));
    if (widths === undefined) {
      const titles = columns.map(({ title }) => title);
      widths = titles.map((title, index) =>
        Math.max(title.length, ...cells.map((cell) => widthOf(cell[index]!))),
      );
      output.write(line(titles, widths, columns));
    }
    for (const cell of cells) output.write(line(cell, widths, columns));
    count += rows.length;
  }
  if (output.json) output.write(count === 0 ? '[]\n' : '\n]\n');
  else if (count === 0) output.write(`${empty}\n`);
}

/** Writes the members of one object below each other, or as JSON. */
export function writeDetails(output: Output, details: Row): void {
  if (output.json) {
    output.write(`${JSON.stringify(details, null, 2)}\n`);
    return;
  }
  const width = Math.max(...Object.keys(details).map((name) => name.length));
  for (const [name, value] of Object.entries(details)) {
    output.write(`${name.padEnd(width)}  ${printable(asText(name, value))}\n`);
  }
}

/** Writes a sentence about the change that a command has made, or the response of the server as JSON. */
export function writeDone(output: Output, text: string, response: object): void {
  output.write(output.json ? `${JSON.stringify(response)}\n` : `${printable(text)}\n`);
}

function cellOf({ value, maxLength = Number.POSITIVE_INFINITY }: Column, row: Row): string {
  const text = printable(value(row));
  const characters = [...text];
  return characters.length <= maxLength ? text : `${characters.slice(0, maxLength - 1).join('')}…`;
}

function line(cells: readonly string[], widths: readonly number[], columns: readonly Column[]): string {
  const padded = cells.map((cell, index) => {
    const space = ' '.repeat(Math.max(0, widths[index]! - widthOf(cell)));
    return columns[index]!.isNumber ? space + cell : cell + space;
  });
  return `${padded.join('  ').trimEnd()}\n`;
}

/** Returns the number of code points, which is close to the width on a terminal. */
const widthOf = (text: string) => [...text].length;

function asText(name: string, value: unknown): string {
  if (value === null || value === undefined) return '-';
  if (name.endsWith('_ts') || name === 'expiry_time') return formatTime(value);
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** The latest time that `Date` knows, in milliseconds since the epoch. Registration tokens may expire later. */
const latestTime = 8.64e15;

/** Returns a time in UTC, to the minute. @param value milliseconds since the epoch; `-` is returned for other values */
export function formatTime(value: unknown): string {
  if (typeof value !== 'number' || value <= 0) return '-';
  const text = new Date(Math.min(value, latestTime)).toISOString();
  return text.slice(0, text.lastIndexOf(':')).replace('T', ' ');
}

export const yesNo = (value: unknown): string => (value === true ? 'yes' : '-');

/** Returns a number of bytes with a unit. */
export function formatBytes(value: unknown): string {
  if (typeof value !== 'number') return '-';
  for (let [size, unit] = [value, 0]; ; size /= 1024, unit++) {
    if (size < 1024 || unit === 4)
      return `${unit === 0 ? size : size.toFixed(1)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][unit]}`;
  }
}

/** Returns a column that shows the beginning of a name, which its owner can make very long. */
export const nameColumn = (title: string, name: string): Column => ({
  ...column(title, name),
  maxLength: 40,
});

/** Returns a column that shows one member of the rows. */
export const column = (title: string, name: string): Column => ({
  title,
  value: (row) => asText(name, row[name]),
});
