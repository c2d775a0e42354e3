import { Type } from 'typebox';
import {
  type Requester,
  type Route,
  type RouteContract,
  type RouteRequest,
  route,
} from '../../kernel/http/index.ts';
import { forbidden } from '../../protocol/index.ts';
import { contentOf, serveContent } from '../serving/serve-content.ts';
import type { MediaFinder } from './finder.ts';
import {
  authenticatedParameters,
  findRequestOf,
  type RetrievalQuery,
  unauthenticatedParameters,
  unauthenticatedPaths,
} from './retrieval.ts';

const mediaPath = '/:serverName/:mediaId';
const pathWithFileName = '/:serverName/:mediaId/:fileName';

/** Query parameters of authenticated downloads. */
const authenticatedDownloadParameters = {
  ...authenticatedParameters,
  /** Lets administrators read quarantined files, as the admin API of the reference server documents. */
  admin_unsafely_bypass_quarantine: Type.Boolean({ default: false }),
};

interface DownloadQuery extends RetrievalQuery {
  readonly admin_unsafely_bypass_quarantine?: boolean;
}

/** Downloads by clients. Source: client-server API, "Content repository". */
export function downloadRoutes(finder: MediaFinder): Route[] {
  const authenticated = {
    method: 'GET',
    auth: 'guest',
    query: Type.Object(authenticatedDownloadParameters),
  } as const;
  const unauthenticated = {
    method: 'GET',
    auth: 'none',
    query: Type.Object(unauthenticatedParameters),
  } as const;
  const prefix = '/_proto/client/v1/media/download';
  return [
    administratorDownload(finder),
    download(finder, { ...authenticated, operationId: 'getContentAuthed', path: prefix + mediaPath }),
    download(finder, {
      ...authenticated,
      operationId: 'getContentOverrideNameAuthed',
      path: prefix + pathWithFileName,
    }),
    download(finder, {
      ...unauthenticated,
      operationId: 'getContent',
      path: unauthenticatedPaths(`/download${mediaPath}`),
    }),
    download(finder, {
      ...unauthenticated,
      operationId: 'getContentOverrideName',
      path: unauthenticatedPaths(`/download${pathWithFileName}`),
    }),
  ];
}

function download(finder: MediaFinder, contract: RouteContract): Route {
  const isUnauthenticated = contract.auth === 'none';
  return route(contract, async (request: RouteRequest) => {
    const { serverName, mediaId, fileName } = request.params as Readonly<Record<string, string>>;
    const address = { serverName: serverName!, mediaId: mediaId! };
    const query = request.query as unknown as DownloadQuery;
    const readsQuarantined = query.admin_unsafely_bypass_quarantine === true;
    if (readsQuarantined && !(request.requester as Requester | undefined)?.isAdmin) {
      throw forbidden('Only server administrators can read quarantined media');
    }
    const reading = { isInspection: readsQuarantined, readsQuarantined };
    const file = await finder.find(address, findRequestOf(request, query, isUnauthenticated, reading));
    return serveContent(() => contentOf(finder.files, file), {
      request,
      tag: `"${file.sha256}"`,
      // An empty name, of a path that ends with a slash, does not replace the name of the upload.
      fileName: fileName === '' ? undefined : fileName,
      audience: isUnauthenticated ? 'public' : 'private',
    });
  });
}

/**
 * Downloads a file of this server, or its copy of remote media, for administrators. No cache keeps it, no page of another
 * origin shows it, and browsers save it instead of showing it.
 */
function administratorDownload(finder: MediaFinder): Route {
  return route(
    {
      operationId: 'downloadMedia',
      method: 'GET',
      path: `/_server/admin/v1/media/download${mediaPath}`,
      auth: 'admin',
      query: Type.Object({ admin_unsafely_bypass_quarantine: Type.Boolean({ default: false }) }),
      response: Type.String({ format: 'binary' }),
    },
    async (request) => {
      const reading = {
        isInspection: true,
        readsQuarantined: request.query.admin_unsafely_bypass_quarantine,
      };
      const query = { timeout_ms: 0, allow_remote: false };
      const file = await finder.find(request.params, findRequestOf(request, query, false, reading));
      return serveContent(() => contentOf(finder.files, file), {
        request,
        tag: `"${file.sha256}"`,
        audience: 'administrators',
      });
    },
  );
}
