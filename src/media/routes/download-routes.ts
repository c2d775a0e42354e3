import { Type } from 'typebox';
import { type Route, type RouteContract, type RouteRequest, route } from '../../kernel/http/index.ts';
import { contentOf, serveContent } from '../serving/serve-content.ts';
import type { MediaFinder } from './finder.ts';
import {
  authedParameters,
  findRequestOf,
  type Retrieval,
  unauthenticatedParameters,
  unauthenticatedPaths,
} from './retrieval.ts';

const [address, named] = ['/:serverName/:mediaId', '/:serverName/:mediaId/:fileName'] as const;

/** Downloads by clients. Source: client-server API, "Content repository". */
export function downloadRoutes(finder: MediaFinder): Route[] {
  const signedIn = { method: 'GET', auth: 'guest', query: Type.Object(authedParameters) } as const;
  const open = { method: 'GET', auth: 'none', query: Type.Object(unauthenticatedParameters) } as const;
  const prefix = '/_proto/client/v1/media/download';
  return [
    download(finder, { ...signedIn, operationId: 'getContentAuthed', path: prefix + address }),
    download(finder, { ...signedIn, operationId: 'getContentOverrideNameAuthed', path: prefix + named }),
    download(finder, {
      ...open,
      operationId: 'getContent',
      path: unauthenticatedPaths(`/download${address}`),
    }),
    download(finder, {
      ...open,
      operationId: 'getContentOverrideName',
      path: unauthenticatedPaths(`/download${named}`),
    }),
  ];
}

function download(finder: MediaFinder, contract: RouteContract): Route {
  const isOpen = contract.auth === 'none';
  return route(contract, async (request: RouteRequest) => {
    const { serverName, mediaId, fileName } = request.params as Readonly<Record<string, string>>;
    const address = { serverName: serverName!, mediaId: mediaId! };
    const file = await finder.find(
      address,
      findRequestOf(request, request.query as unknown as Retrieval, isOpen),
    );
    return serveContent(() => contentOf(finder.files, file), {
      request,
      tag: `"${file.sha256}"`,
      fileName,
      audience: isOpen ? 'public' : 'private',
    });
  });
}
