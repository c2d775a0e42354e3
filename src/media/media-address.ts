import { isServerName, notFound, parseMxcUri } from '../protocol/index.ts';

/** `mxc://serverName/mediaId`. */
export interface MediaAddress {
  readonly serverName: string;
  readonly mediaId: string;
}

/**
 * The address in the path of a request, which may hold anything.
 * @throws MatrixError M_NOT_FOUND when there can be no such media
 * Source: client-server API, "Content repository", "Security considerations".
 */
export function mediaAddress(serverName: string, mediaId: string): MediaAddress {
  const parsed = isServerName(serverName) ? parseMxcUri(`mxc://${serverName}/${mediaId}`) : undefined;
  if (parsed?.serverName !== serverName || parsed.mediaId !== mediaId) throw noMedia();
  return parsed;
}

export const noMedia = () => notFound('There is no such media');
