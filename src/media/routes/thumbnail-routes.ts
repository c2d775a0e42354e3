import { Type } from 'typebox';
import { type Route, type RouteContract, type RouteRequest, route } from '../../kernel/http/index.ts';
import { serveContent } from '../serving/serve-content.ts';
import type { Thumbnails } from '../thumbnails/thumbnails.ts';
import type { MediaFinder } from './finder.ts';
import {
  authenticatedParameters,
  findRequestOf,
  type RetrievalQuery,
  unauthenticatedParameters,
  unauthenticatedPaths,
} from './retrieval.ts';
import { type ThumbnailQuery, thumbnailQuery, thumbnailRequestOf } from './thumbnail-query.ts';

/** Thumbnails for clients. Source: client-server API, "Content repository", "Thumbnails". */
export function thumbnailRoutes(finder: MediaFinder, thumbnails: Thumbnails): Route[] {
  const contracts: readonly RouteContract[] = [
    {
      operationId: 'getContentThumbnailAuthed',
      method: 'GET',
      path: '/_proto/client/v1/media/thumbnail/:serverName/:mediaId',
      auth: 'guest',
      query: Type.Object({ ...authenticatedParameters, ...thumbnailQuery }),
    },
    {
      operationId: 'getContentThumbnail',
      method: 'GET',
      path: unauthenticatedPaths('/thumbnail/:serverName/:mediaId'),
      auth: 'none',
      query: Type.Object({ ...unauthenticatedParameters, ...thumbnailQuery }),
    },
  ];
  return contracts.map((contract) => thumbnail(finder, thumbnails, contract));
}

function thumbnail(finder: MediaFinder, thumbnails: Thumbnails, contract: RouteContract): Route {
  const isUnauthenticated = contract.auth === 'none';
  return route(contract, async (request: RouteRequest) => {
    const { serverName, mediaId } = request.params as Readonly<Record<string, string>>;
    const query = request.query as unknown as RetrievalQuery & ThumbnailQuery;
    const address = { serverName: serverName!, mediaId: mediaId! };
    const file = await finder.find(address, findRequestOf(request, query, isUnauthenticated));
    const thumbnailRequest = thumbnailRequestOf(query);
    const { width, height, method, isAnimated } = thumbnailRequest;
    const tag = `"${file.sha256}-${width}x${height}-${method}${isAnimated ? '-animated' : ''}"`;
    return serveContent(() => thumbnails.find(file, thumbnailRequest), {
      request,
      tag,
      audience: isUnauthenticated ? 'public' : 'private',
    });
  });
}
