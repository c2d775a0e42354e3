import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { RateLimiter } from '../../kernel/rate-limits/index.ts';
import { describeUpload } from '../description.ts';
import type { LocalMedia } from '../local/local-media.ts';
import { mediaAddress, mediaNotFound } from '../media-address.ts';
import type { MediaRepositoryRules } from '../media-rules.ts';

export interface UploadRouteDeps {
  readonly local: LocalMedia;
  readonly serverName: string;
  /** Limits the creation of media ids. */
  readonly createLimit: RateLimiter;
  readonly options: {
    /** Bytes. */
    readonly max_upload_size: number;
  };
  /** Answers `GET /media/config` for some users in place of the option. */
  readonly config?: MediaRepositoryRules['config'];
}

const query = Type.Object({ filename: Type.Optional(Type.String()) });

/** Uploads. Source: client-server API, "Content repository". */
export function uploadRoutes(deps: UploadRouteDeps): Route[] {
  const { local, serverName, createLimit, options } = deps;
  const uri = (mediaId: string) => `mxc://${serverName}/${mediaId}`;
  const upload = {
    auth: 'user',
    refuseSuspended: true,
    bodyMode: 'stream',
    bodyLimit: options.max_upload_size,
    query,
  } as const;
  return [
    route(
      {
        ...upload,
        operationId: 'uploadContent',
        method: 'POST',
        path: ['/_proto/media/v3/upload', '/_proto/media/r0/upload', '/_proto/media/v1/upload'],
      },
      async ({ requester, headers, query: { filename }, stream }) => {
        const description = describeUpload(headers['content-type'], filename);
        return { content_uri: uri(await local.upload(requester.userId, description, bytesOf(stream))) };
      },
    ),
    route(
      {
        operationId: 'createContent',
        method: 'POST',
        path: '/_proto/media/v1/create',
        auth: 'user',
        refuseSuspended: true,
      },
      async ({ requester: { userId } }) => {
        createLimit.take(userId);
        const { mediaId, expiresAt } = await local.create(userId);
        return { content_uri: uri(mediaId), unused_expires_at: expiresAt };
      },
    ),
    route(
      {
        ...upload,
        operationId: 'uploadContentToMXC',
        method: 'PUT',
        path: '/_proto/media/v3/upload/:serverName/:mediaId',
      },
      async ({ params, requester, headers, query: { filename }, stream }) => {
        const address = mediaAddress(params.serverName, params.mediaId);
        if (address.serverName !== serverName) throw mediaNotFound();
        const description = describeUpload(headers['content-type'], filename);
        await local.complete(requester.userId, address.mediaId, description, bytesOf(stream));
        return {};
      },
    ),
    configRoute(
      'getConfig',
      ['/_proto/media/v3/config', '/_proto/media/r0/config', '/_proto/media/v1/config'],
      deps,
    ),
    configRoute('getConfigAuthed', '/_proto/client/v1/media/config', deps),
  ];
}

function configRoute(
  operationId: string,
  path: string | readonly string[],
  { options, config }: Pick<UploadRouteDeps, 'config' | 'options'>,
): Route {
  return route(
    { operationId, method: 'GET', path, auth: 'guest' },
    async ({ requester }) =>
      (await config?.(requester.userId)) ?? { 'm.upload.size': options.max_upload_size },
  );
}

/** Returns the body stream, which is present with `bodyMode: 'stream'`. */
const bytesOf = (stream: NodeJS.ReadableStream | undefined) => stream as unknown as AsyncIterable<Uint8Array>;
