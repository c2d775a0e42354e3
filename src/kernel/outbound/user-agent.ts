import { readFileSync } from 'node:fs';

/** How this program calls itself towards others. */
export function userAgent(suffix: string | null): string {
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  const { name, version } = JSON.parse(text) as { name: string; version: string };
  const own = `${name.charAt(0).toUpperCase()}${name.slice(1)}/${version}`;
  // Whoever configures a line break must not be able to add a header by mistake.
  const clean = suffix?.replace(/[^\t\u0020-\u007e]/g, '').trim() ?? '';
  return clean === '' ? own : `${own} ${clean}`;
}
