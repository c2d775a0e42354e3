import { Type } from 'typebox';
import { type Route, type RouteContract, type RouteRequest, route } from '../../kernel/http/index.ts';
import { serveFile } from '../serving/serve-file.ts';
import { type Finder, patienceOf } from './finder.ts';

/** Milliseconds that a client may have its request wait for an upload that is still to come. */
const longestWait = 60_000;

const timeout = { timeout_ms: Type.Integer({ default: 20_000 }) };
const authedQuery = Type.Object(timeout);
const openQuery = Type.Object({ ...timeout, allow_remote: Type.Boolean({ default: true }) });

const openPaths = (rest: string) => ['v3', 'r0', 'v1'].map((version) => `/_proto/media/${version}${rest}`);

const [address, named] = ['/:serverName/:mediaId', '/:serverName/:mediaId/:fileName'] as const;

/** Downloads by clients. Source: client-server API, "Content repository". */
export function downloadRoutes(finder: Finder): Route[] {
  const signedIn = { method: 'GET', auth: 'guest', query: authedQuery } as const;
  const open = { method: 'GET', auth: 'none', query: openQuery } as const;
  const prefix = '/_proto/client/v1/media/download';
  return [
    download(finder, { ...signedIn, operationId: 'getContentAuthed', path: prefix + address }),
    download(finder, { ...signedIn, operationId: 'getContentOverrideNameAuthed', path: prefix + named }),
    download(finder, { ...open, operationId: 'getContent', path: openPaths(`/download${address}`) }),
    download(finder, {
      ...open,
      operationId: 'getContentOverrideName',
      path: openPaths(`/download${named}`),
    }),
  ];
}

function download(finder: Finder, contract: RouteContract): Route {
  const isOpen = contract.auth === 'none';
  return route(contract, async ({ params, query, ip, signal }: RouteRequest) => {
    const { serverName, mediaId, fileName } = params as Readonly<Record<string, string>>;
    const { timeout_ms, allow_remote = true } = query as unknown as {
      timeout_ms: number;
      allow_remote?: boolean;
    };
    const file = await finder.find(
      { serverName: serverName!, mediaId: mediaId! },
      { patience: patienceOf(timeout_ms, longestWait), ip, signal, isOpen, mayFetch: allow_remote },
    );
    return serveFile(finder.disk, file, { fileName, audience: isOpen ? 'public' : 'private' });
  });
}
