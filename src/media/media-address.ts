import { isServerName, notFound, parseMxcUri } from '../protocol/index.ts';

/** The parts of an `mxc://serverName/mediaId` URI. */
export interface MediaAddress {
  readonly serverName: string;
  readonly mediaId: string;
}

/**
 * Returns the address of media in the path of a request. The parts of the path are arbitrary input.
 * @throws MatrixError M_NOT_FOUND for an invalid address
 * Source: client-server API, "Content repository", "Security considerations".
 */
export function mediaAddress(serverName: string, mediaId: string): MediaAddress {
  const parsed = isServerName(serverName) ? parseMxcUri(`mxc://${serverName}/${mediaId}`) : undefined;
  if (parsed?.serverName !== serverName || parsed.mediaId !== mediaId) throw mediaNotFound();
  return parsed;
}

export const mediaNotFound = () => notFound('Media not found');
