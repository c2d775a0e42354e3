import { Type } from 'typebox';
import { type Route, route } from '../kernel/http/index.ts';
import type { UrlPreviews } from './url-previews.ts';

const query = Type.Object({
  url: Type.String({ maxLength: 8_192 }),
  ts: Type.Optional(Type.Integer({ minimum: 0 })),
});

/** Returns the routes of URL previews. Source: client-server API, `GET /_matrix/client/v1/media/preview_url`. */
export function urlPreviewRoutes(previews: UrlPreviews): Route[] {
  const contracts = [
    ['getUrlPreviewAuthed', '/_proto/client/v1/media/preview_url'],
    ['getUrlPreview', ['v3', 'r0', 'v1'].map((version) => `/_proto/media/${version}/preview_url`)],
  ] as const;
  return contracts.map(([operationId, path]) =>
    route({ operationId, method: 'GET', path, auth: 'user', query }, ({ requester, query: { url, ts } }) =>
      previews.preview(requester.userId, url, ts),
    ),
  );
}
