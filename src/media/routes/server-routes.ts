import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { Randomness } from '../../kernel/randomness.ts';
import type { MediaStore } from '../disk/media-store.ts';
import type { LocalMedia } from '../local/local-media.ts';
import { mediaAddress } from '../media-address.ts';
import { serveParts } from '../serving/serve-file.ts';
import { patienceOf } from './finder.ts';

/**
 * Milliseconds that another server may have its request wait. Shorter than for clients: while it waits, it takes one
 * of the few places that `rc_federation.concurrent` gives that server.
 */
const longestWait = 5_000;

export interface ServerRouteParts {
  readonly serverName: string;
  readonly disk: MediaStore;
  readonly local: LocalMedia;
  readonly randomness: Randomness;
}

/** Media of this server for others. Source: server-server API, "Content Repository". */
export function mediaServerRoutes({ serverName, disk, local, randomness }: ServerRouteParts): Route[] {
  return [
    route(
      {
        operationId: 'getContent',
        method: 'GET',
        path: '/_proto/federation/v1/media/download/:mediaId',
        auth: 'server',
        query: Type.Object({ timeout_ms: Type.Integer({ default: 20_000 }) }),
      },
      async ({ params, query: { timeout_ms }, signal }) => {
        const { mediaId } = mediaAddress(serverName, params.mediaId);
        const file = await local.find(mediaId, patienceOf(timeout_ms, longestWait), signal);
        return serveParts(disk, file, randomness);
      },
    ),
  ];
}
