import { unknown } from '../../protocol/index.ts';
import { contentTypeOf } from '../description.ts';
import { type MediaAddress, noMedia } from '../media-address.ts';
import type { MediaDescription } from '../media-file.ts';
import { fileNameIn } from '../serving/content-disposition.ts';
import type { MediaAnswer, MediaRequest, MediaServers } from './media-servers.ts';
import { MalformedMultipart, readMediaPart } from './multipart.ts';

/** Media of another server as it comes in. */
export interface IncomingMedia extends MediaDescription {
  readonly content: AsyncIterable<Uint8Array>;
  /** Ends the request; to be called whatever happens. */
  close(): void;
}

/**
 * Asks another server for media: at the endpoint for servers, and at the old one when that is all it has.
 * @param openly only at the old one
 * @throws MatrixError; `content` as well, and with MalformedMultipart
 * Source: server-server API, "Content Repository".
 */
export async function fetchMedia(
  servers: MediaServers,
  address: MediaAddress,
  request: MediaRequest,
  openly: boolean,
): Promise<IncomingMedia> {
  const answer = openly ? undefined : await servers.download(address, request);
  if (answer === undefined) return plainMedia(await servers.downloadOpenly(address, request));
  try {
    const { headers, content } = await readMediaPart(headerOf(answer, 'content-type'), answer.body);
    const location = headers.get('location');
    if (location === undefined) {
      const type = headers.get('content-type');
      return incoming(answer, content, type, headers.get('content-disposition'));
    }
    answer.body.destroy();
    return plainMedia(await servers.fetch(locationOf(location), request));
  } catch (error) {
    answer.body.destroy();
    throw error instanceof MalformedMultipart
      ? unknown(`The other server's answer: ${error.message}`, 502)
      : error;
  }
}

/** Media that is the whole of an answer. */
function plainMedia(answer: MediaAnswer): IncomingMedia {
  if (answer.status !== 200) {
    answer.body.destroy();
    throw answer.status === 404 ? noMedia() : unknown('The media could not be fetched', 502);
  }
  const [type, disposition] = ['content-type', 'content-disposition'].map((name) => headerOf(answer, name));
  return incoming(answer, answer.body, type, disposition);
}

const incoming = (
  { body }: MediaAnswer,
  content: AsyncIterable<Uint8Array>,
  type: string | undefined,
  disposition: string | undefined,
): IncomingMedia => ({
  contentType: contentTypeOf(type),
  fileName: fileNameIn(disposition),
  content,
  close: () => body.destroy(),
});

function headerOf({ headers }: MediaAnswer, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

function locationOf(location: string): URL {
  const url = URL.parse(location);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new MalformedMultipart('It points to what is no address of the web');
  }
  return url;
}
