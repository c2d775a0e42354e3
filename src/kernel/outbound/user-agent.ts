import { readFileSync } from 'node:fs';

/** How this program calls itself towards others. */
export function ownSoftware(): { readonly name: string; readonly version: string } {
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  const { name, version } = JSON.parse(text) as { name: string; version: string };
  return { name: name.charAt(0).toUpperCase() + name.slice(1), version };
}

/** The `User-Agent` of requests. */
export function userAgent(suffix: string | null): string {
  const { name, version } = ownSoftware();
  // Whoever configures a line break must not be able to add a header by mistake.
  const clean = suffix?.replace(/[^\t\u0020-\u007e]/g, '').trim() ?? '';
  return clean === '' ? `${name}/${version}` : `${name}/${version} ${clean}`;
}
