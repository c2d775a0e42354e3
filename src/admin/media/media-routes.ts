import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { MediaDetails, MediaModeration } from '../../media/index.ts';
import { invalidParam, notFound } from '../../protocol/index.ts';
import { flag, integer, nothing, nullable, nullableInteger, nullableText, text } from '../response-fields.ts';
import type { KnownRooms } from '../rooms/known-rooms.ts';
import type { LocalUsers } from '../users/local-user.ts';
import type { ImagesInUse } from './images-in-use.ts';
import type { RoomMedia } from './room-media.ts';

const paths = {
  one: '/_server/admin/v1/media/:serverName/:mediaId',
  quarantine: '/_server/admin/v1/media/quarantine/:serverName/:mediaId',
  release: '/_server/admin/v1/media/unquarantine/:serverName/:mediaId',
  protect: '/_server/admin/v1/media/protect/:mediaId',
  unprotect: '/_server/admin/v1/media/unprotect/:mediaId',
  ofRoom: '/_server/admin/v1/room/:roomId/media',
  deletion: ['/_server/admin/v1/media/delete', '/_server/admin/v1/media/:serverName/delete'],
} as const;

/**
 * A day in December 1970, in milliseconds since the epoch. Smaller values are probably in seconds. The reference server
 * has the same limit.
 */
const earliestTime = 30_000_000_000;

const time = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const quarantined = Type.Object({ num_quarantined: Type.Integer() });
const deletedMedia = Type.Object({ deleted_media: Type.Array(Type.String()), total: Type.Integer() });

const mediaInfo = Type.Object({
  media_origin: text,
  user_id: nullableText,
  media_id: text,
  media_type: nullableText,
  media_length: nullableInteger,
  upload_name: nullableText,
  created_ts: integer,
  filesystem_id: nullableText,
  url_cache: Type.Null(),
  last_access_ts: nullableInteger,
  quarantined_by: nullableText,
  authenticated: flag,
  safe_from_quarantine: nullable(flag),
  sha256: nullableText,
});

export interface MediaRoutesDeps {
  readonly moderation: MediaModeration;
  readonly roomMedia: RoomMedia;
  readonly images: ImagesInUse;
  readonly rooms: KnownRooms;
  readonly users: LocalUsers;
  readonly serverName: string;
}

/** Shows, quarantines, protects and deletes media. */
export function mediaRoutes(deps: MediaRoutesDeps): Route[] {
  return [...quarantineRoutes(deps), ...roomRoutes(deps), ...deletionRoutes(deps)];
}

function quarantineRoutes({ moderation, users }: MediaRoutesDeps): Route[] {
  return [
    route(
      {
        operationId: 'getMedia',
        method: 'GET',
        path: paths.one,
        auth: 'admin',
        response: Type.Object({ media_info: mediaInfo }),
      },
      async ({ params }) => {
        checkStorable(params.serverName, params.mediaId);
        const found = await moderation.details(params);
        if (found === undefined) throw notFound('Unknown media');
        return { media_info: detailsJson(found) };
      },
    ),
    changesRoute(moderation),
    route(
      {
        operationId: 'quarantineMedia',
        method: 'POST',
        path: paths.quarantine,
        auth: 'admin',
        response: nothing,
      },
      async ({ params, requester }) => {
        checkStorable(params.serverName, params.mediaId);
        await moderation.quarantine([params], requester.userId);
        return {};
      },
    ),
    route(
      {
        operationId: 'unquarantineMedia',
        method: 'POST',
        path: paths.release,
        auth: 'admin',
        response: nothing,
      },
      async ({ params }) => {
        checkStorable(params.serverName, params.mediaId);
        await moderation.release(params);
        return {};
      },
    ),
    ...(['protect', 'unprotect'] as const).map((action) =>
      route(
        {
          operationId: `${action}Media`,
          method: 'POST',
          path: paths[action],
          auth: 'admin',
          response: nothing,
        },
        async ({ params: { mediaId } }) => {
          checkStorable(mediaId);
          const mediaExists = await moderation.setProtected(mediaId, action === 'protect');
          if (!mediaExists) throw notFound('Unknown media');
          return {};
        },
      ),
    ),
    route(
      {
        operationId: 'quarantineUserMedia',
        method: 'POST',
        path: '/_server/admin/v1/user/:userId/media/quarantine',
        auth: 'admin',
        response: quarantined,
      },
      async ({ params: { userId }, requester }) => {
        await users.get(userId);
        return { num_quarantined: await moderation.quarantineOfUser(userId, requester.userId) };
      },
    ),
  ];
}

/** Maximum number of changes in a response. */
const maxChanges = 100;

function changesRoute(moderation: MediaModeration): Route {
  return route(
    {
      operationId: 'listQuarantineChanges',
      method: 'GET',
      path: '/_server/admin/v1/media/quarantine_changes',
      auth: 'admin',
      query: Type.Object({ from: Type.Integer({ minimum: 0, default: 0 }) }),
      response: Type.Object({
        next_batch: integer,
        changes: Type.Array(Type.Object({ origin: text, media_id: text, quarantined: flag })),
      }),
    },
    async ({ query: { from } }) => {
      const found = await moderation.changes(from, maxChanges);
      return {
        next_batch: found.at(-1)?.id ?? from,
        changes: found.map(({ serverName, mediaId, isQuarantined }) => ({
          origin: serverName,
          media_id: mediaId,
          quarantined: isQuarantined,
        })),
      };
    },
  );
}

function roomRoutes({ moderation, roomMedia, rooms, serverName }: MediaRoutesDeps): Route[] {
  return [
    route(
      {
        operationId: 'listRoomMedia',
        method: 'GET',
        path: paths.ofRoom,
        auth: 'admin',
        response: Type.Object({ local: Type.Array(text), remote: Type.Array(text) }),
      },
      async ({ params: { roomId } }) => {
        const addresses = await roomMedia.of(await rooms.get(roomId));
        const [local, remote] = [true, false].map((isLocal) =>
          addresses
            .filter((address) => (address.serverName === serverName) === isLocal)
            .map(({ serverName: server, mediaId }) => `mxc://${server}/${mediaId}`),
        );
        return { local, remote };
      },
    ),
    route(
      {
        operationId: 'quarantineRoomMedia',
        method: 'POST',
        path: [`${paths.ofRoom}/quarantine`, '/_server/admin/v1/quarantine_media/:roomId'],
        auth: 'admin',
        response: quarantined,
      },
      async ({ params: { roomId }, requester }) => {
        const addresses = await roomMedia.of(await rooms.get(roomId));
        return { num_quarantined: await moderation.quarantine(addresses, requester.userId) };
      },
    ),
  ];
}

/** Maximum number of files that one request deletes. Clients repeat the request until it deletes no file. */
const maxDeleted = 10_000;

function deletionRoutes({ moderation, images, serverName }: MediaRoutesDeps): Route[] {
  return [
    route(
      {
        operationId: 'deleteMedia',
        method: 'DELETE',
        path: paths.one,
        auth: 'admin',
        response: deletedMedia,
      },
      async ({ params: { serverName: server, mediaId } }) => {
        if (server !== serverName) throw invalidParam('Only media of this server can be deleted');
        checkStorable(mediaId);
        const deleted = await moderation.deleteLocal([mediaId]);
        if (deleted.length === 0) throw notFound('Unknown media');
        return { deleted_media: deleted, total: deleted.length };
      },
    ),
    route(
      {
        operationId: 'deleteMediaByAge',
        method: 'POST',
        path: paths.deletion,
        auth: 'admin',
        query: Type.Object({
          before_ts: time,
          size_gt: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0 }),
          keep_profiles: Type.Boolean({ default: true }),
        }),
        response: deletedMedia,
      },
      async ({ query, params }) => {
        const { serverName: server = serverName } = params as { serverName?: string };
        if (server !== serverName) throw invalidParam('Only media of this server can be deleted');
        checkTime(query.before_ts);
        const selection = { before: query.before_ts, largerThan: query.size_gt };
        const kept = query.keep_profiles
          ? (ids: readonly string[]) => images.among(ids)
          : async () => new Set<string>();
        const deleted = await moderation.deleteOldLocal(selection, kept, maxDeleted);
        return { deleted_media: deleted, total: deleted.length };
      },
    ),
    route(
      {
        operationId: 'purgeRemoteMedia',
        method: 'POST',
        path: '/_server/admin/v1/purge_media_cache',
        auth: 'admin',
        query: Type.Object({ before_ts: time }),
        response: Type.Object({ deleted: Type.Integer() }),
      },
      async ({ query }) => {
        checkTime(query.before_ts);
        return { deleted: await moderation.purgeRemote(query.before_ts) };
      },
    ),
  ];
}

function checkTime(ts: number): void {
  if (ts < earliestTime) throw invalidParam("'before_ts' must be in milliseconds");
}

/** Checks that no id contains U+0000, which databases do not store. @throws MatrixError M_NOT_FOUND */
function checkStorable(...ids: readonly string[]): void {
  if (ids.some((id) => id.includes('\0'))) throw notFound('Unknown media');
}

const detailsJson = (media: MediaDetails) => ({
  media_origin: media.origin,
  user_id: media.userId ?? null,
  media_id: media.mediaId,
  media_type: media.contentType,
  media_length: media.size,
  upload_name: media.fileName,
  created_ts: media.createdAt,
  filesystem_id: media.fileId,
  url_cache: null,
  last_access_ts: media.lastAccessAt,
  quarantined_by: media.quarantinedBy,
  authenticated: media.isAuthenticated,
  safe_from_quarantine: media.isProtected ?? null,
  sha256: media.sha256,
});
