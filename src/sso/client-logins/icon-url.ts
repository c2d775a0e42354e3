import { parseMxcUri } from '../../protocol/index.ts';

/** Returns the path of the icon of a provider on this server; `undefined` for an invalid URI. */
export function iconUrl(icon: string): string | undefined {
  const address = parseMxcUri(icon);
  if (address === undefined) return undefined;
  const { serverName, mediaId } = address;
  return `/_matrix/media/v3/thumbnail/${encodeURIComponent(serverName)}/${encodeURIComponent(mediaId)}?width=32&height=32&method=scale`;
}
