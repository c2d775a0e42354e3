import { readFileSync } from 'node:fs';

/** Returns the name and version of this software, as shown to other servers. */
export function ownSoftware(): { readonly name: string; readonly version: string } {
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  const { name, version } = JSON.parse(text) as { name: string; version: string };
  return { name: name.charAt(0).toUpperCase() + name.slice(1), version };
}

/** Returns the `User-Agent` of requests. */
export function userAgent(suffix: string | null): string {
  const { name, version } = ownSoftware();
  // A line break in the configuration must not add a header.
  const clean = suffix?.replace(/[^\t\u0020-\u007e]/g, '').trim() ?? '';
  return clean === '' ? `${name}/${version}` : `${name}/${version} ${clean}`;
}
