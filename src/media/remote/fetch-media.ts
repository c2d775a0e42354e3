import { unknown } from '../../protocol/index.ts';
import { contentTypeOf } from '../description.ts';
import { type MediaAddress, mediaNotFound } from '../media-address.ts';
import type { MediaDescription } from '../media-file.ts';
import { fileNameIn } from '../serving/content-disposition.ts';
import type { MediaRequest, MediaResponse, MediaServers } from './media-servers.ts';
import { MalformedMultipart, readMediaPart } from './multipart.ts';

/** Remote media while it is downloaded. */
export interface IncomingMedia extends MediaDescription {
  readonly content: AsyncIterable<Uint8Array>;
  /** Ends the request. Must be called in any case. */
  close(): void;
}

/**
 * Requests media from a remote server. Uses the federation endpoint, and follows the URL that it may return instead of
 * the media. Uses the unauthenticated endpoint of the client-server API if the server does not have the federation
 * endpoint.
 * @param unauthenticatedOnly whether only the unauthenticated endpoint is used
 * @throws MatrixError; reading `content` throws OutboundError and MalformedMultipart
 * Source: server-server API, "Content Repository".
 */
export async function fetchMedia(
  servers: MediaServers,
  address: MediaAddress,
  request: MediaRequest,
  unauthenticatedOnly: boolean,
): Promise<IncomingMedia> {
  const answer = unauthenticatedOnly ? undefined : await servers.download(address, request);
  if (answer === undefined) return plainMedia(await servers.downloadUnauthenticated(address, request));
  try {
    const { headers, content } = await readMediaPart(headerOf(answer, 'content-type'), answer.body);
    const location = headers.get('location');
    if (location === undefined) {
      const type = headers.get('content-type');
      return incomingMedia(answer, content, type, headers.get('content-disposition'));
    }
    answer.body.destroy();
    return plainMedia(await servers.fetch(locationOf(location), request));
  } catch (error) {
    answer.body.destroy();
    throw error instanceof MalformedMultipart
      ? unknown(`Invalid response of the remote server: ${error.message}`, 502)
      : error;
  }
}

/** Reads media that is the whole body of a response. */
function plainMedia(answer: MediaResponse): IncomingMedia {
  if (answer.status !== 200) {
    answer.body.destroy();
    throw answer.status === 404 ? mediaNotFound() : unknown('Failed to fetch the media', 502);
  }
  const type = headerOf(answer, 'content-type');
  return incomingMedia(answer, answer.body, type, headerOf(answer, 'content-disposition'));
}

const incomingMedia = (
  { body }: MediaResponse,
  content: AsyncIterable<Uint8Array>,
  type: string | undefined,
  disposition: string | undefined,
): IncomingMedia => ({
  contentType: contentTypeOf(type),
  fileName: fileNameIn(disposition),
  content,
  close: () => body.destroy(),
});

function headerOf({ headers }: MediaResponse, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

function locationOf(location: string): URL {
  const url = URL.parse(location);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new MalformedMultipart('The Location header is not an http or https URL');
  }
  return url;
}
