import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { Randomness } from '../../kernel/randomness.ts';
import type { LocalMedia } from '../local/local-media.ts';
import { mediaAddress } from '../media-address.ts';
import type { MediaFiles } from '../providers/media-files.ts';
import { contentOf, serveMultipart } from '../serving/serve-content.ts';
import type { Thumbnails } from '../thumbnails/thumbnails.ts';
import { boundedTimeout } from './finder.ts';
import { thumbnailQuery, thumbnailRequestOf } from './thumbnail-query.ts';

/**
 * Milliseconds that a remote server's request may wait. Shorter than for clients, since a waiting request
 * counts towards `rc_federation.concurrent`.
 */
const maxTimeout = 5_000;

export interface ServerRouteDeps {
  readonly serverName: string;
  readonly files: MediaFiles;
  readonly local: LocalMedia;
  readonly thumbnails: Thumbnails;
  readonly randomness: Randomness;
}

/**
 * Routes that serve this server's media to remote servers. Source: server-server API, "Content Repository".
 */
export function mediaServerRoutes({
  serverName,
  files,
  local,
  thumbnails,
  randomness,
}: ServerRouteDeps): Route[] {
  const timeout = { timeout_ms: Type.Integer({ default: 20_000 }) };
  const find = (mediaId: string, timeout_ms: number, signal: AbortSignal) =>
    local.find(mediaAddress(serverName, mediaId).mediaId, boundedTimeout(timeout_ms, maxTimeout), signal);
  return [
    route(
      {
        operationId: 'getContent',
        method: 'GET',
        path: '/_proto/federation/v1/media/download/:mediaId',
        auth: 'server',
        query: Type.Object(timeout),
      },
      async ({ params, query: { timeout_ms }, signal }) => {
        const file = await find(params.mediaId, timeout_ms, signal);
        return serveMultipart(await contentOf(files, file), randomness);
      },
    ),
    route(
      {
        operationId: 'getContentThumbnail',
        method: 'GET',
        path: '/_proto/federation/v1/media/thumbnail/:mediaId',
        auth: 'server',
        query: Type.Object({ ...timeout, ...thumbnailQuery }),
      },
      async ({ params, query, signal }) => {
        const file = await find(params.mediaId, query.timeout_ms, signal);
        return serveMultipart(await thumbnails.find(file, thumbnailRequestOf(query)), randomness);
      },
    ),
  ];
}
