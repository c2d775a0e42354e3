import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { parse as parseQuery } from 'fast-querystring';
import { type FastifyInstance, fastify } from 'fastify';
import { invalidParam, unrecognized } from '../../../protocol/index.ts';
import { type ListenerResource, serviceOf } from '../listeners/resources.ts';
import { Exchange, type Scope } from '../requests/exchange.ts';
import { Endpoint, type EndpointDependencies } from './endpoint.ts';
import { FixedPaths } from './fixed-paths.ts';
import { KnownPaths, pathsOf } from './known-paths.ts';
import { toDocumentsSpelling } from './namespaces.ts';
import { Reply, type Route } from './route.ts';

/** Answers requests; `close` lets go of what it holds. */
export interface Router {
  readonly listener: RequestListener;
  close(): Promise<void>;
}

/**
 * Routes the requests of one listener. Fastify finds the route; bodies, checks and responses are ours (see
 * `Endpoint`), because the protocol's rules about them differ from its own: bodies are JSON whatever their type says,
 * and every error has a code.
 */
export async function createRouter(
  routes: readonly Route[],
  resources: readonly ListenerResource[],
  scope: Scope,
  deps: EndpointDependencies,
): Promise<Router> {
  const app = fastify({
    exposeHeadRoutes: false,
    rewriteUrl: (request) => toDocumentsSpelling(request.url!),
    frameworkErrors: (_error, request, reply) => serve(malformed, request.raw, reply.hijack().raw, {}, {}),
    // Identifiers take up to 255 bytes, each up to three characters; the server bounds the URL as a whole.
    routerOptions: { maxParamLength: 16_384, querystringParser: parseQuery },
  });
  const serve: Serve = (endpoint, request, response, params, query) =>
    void endpoint.serve(new Exchange(scope, request, response, params, query));
  const malformed = new Endpoint(malformedPath, false, deps);
  leaveBodiesAlone(app);
  const served = routes.filter((route) => pathsOf(route).some((path) => isServed(resources, path)));
  const fixed = new FixedPaths<Endpoint>();
  for (const route of served) addRoute(app, fixed, route, resources, deps, serve);
  addRest(app, served, deps, serve);
  await app.ready();
  return {
    listener(request, response) {
      const url = request.url!;
      const mark = url.indexOf('?');
      const endpoint = fixed.find(request.method!, mark === -1 ? url : url.slice(0, mark));
      if (endpoint === undefined) app.routing(request, response);
      else
        serve(
          endpoint,
          request,
          response,
          noParams,
          mark === -1 ? noParams : parseQuery(url.slice(mark + 1)),
        );
    },
    close: () => app.close(),
  };
}

const noParams = {};

type Serve = (
  endpoint: Endpoint,
  request: IncomingMessage,
  response: ServerResponse,
  params: Readonly<Record<string, string>>,
  query: Readonly<Record<string, string | string[] | undefined>>,
) => void;

interface Parsed {
  Params: Record<string, string>;
  Querystring: Record<string, string | string[] | undefined>;
}

function leaveBodiesAlone(app: FastifyInstance): void {
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
    app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  }
}

const isServed = (resources: readonly ListenerResource[], path: string) =>
  serviceOf(resources, path) !== 'none';

function addRoute(
  app: FastifyInstance,
  fixed: FixedPaths<Endpoint>,
  route: Route,
  resources: readonly ListenerResource[],
  deps: EndpointDependencies,
  serve: Serve,
): void {
  const { method } = route.contract;
  for (const url of pathsOf(route)) {
    const service = serviceOf(resources, url);
    if (service === 'none') continue;
    const endpoint = new Endpoint(route, service === 'gzip', deps);
    const methods = method === 'GET' ? ['GET', 'HEAD'] : [method];
    fixed.add(methods, url, endpoint);
    app.route<Parsed>({
      method: methods,
      url,
      handler: (request, reply) => {
        serve(endpoint, request.raw, reply.hijack().raw, request.params, request.query);
      },
    });
  }
}

/** Preflights, wrong methods and unknown paths. */
function addRest(
  app: FastifyInstance,
  served: readonly Route[],
  deps: EndpointDependencies,
  serve: Serve,
): void {
  const known = new KnownPaths(served);
  const rest: Route = {
    contract: { method: 'GET', path: '*', auth: 'none' },
    handler: ({ method, url }) => {
      if (method === 'OPTIONS') return new Reply(204, undefined, { 'Access-Control-Max-Age': '86400' });
      if (known.has(toDocumentsSpelling(url))) throw unrecognized(`${method} is not possible here`, 405);
      throw unrecognized('Unrecognized request');
    },
  };
  const endpoint = new Endpoint(rest, false, deps);
  app.setNotFoundHandler((request, reply) => {
    serve(endpoint, request.raw, reply.hijack().raw, {}, {});
  });
}

const malformedPath: Route = {
  contract: { method: 'GET', path: '*', auth: 'none' },
  handler: () => {
    throw invalidParam('The path is not properly percent-encoded');
  },
};
