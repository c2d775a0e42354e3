import type { RequestListener } from 'node:http';
import { invalidParam, unrecognized } from '../../../protocol/index.ts';
import type { ListenerOptions } from '../listeners/listeners.ts';
import { type ListenerResource, serviceOf } from '../listeners/resources.ts';
import { Exchange, type ListenerContext } from '../requests/exchange.ts';
import { bothSpellings } from '../routing/namespaces.ts';
import { pathsOf, Reply, type Route } from '../routing/route.ts';
import { type Match, RouteTable } from '../routing/route-table.ts';
import { Endpoint, type EndpointDeps } from './endpoint.ts';

/** Routes the requests of one listener to the endpoints of its resources and additional routes (decision 0127). */
export function createRouter(
  routes: readonly Route[],
  { resources, additionalRoutes = [] }: Pick<ListenerOptions, 'resources' | 'additionalRoutes'>,
  context: ListenerContext,
  deps: EndpointDeps,
): RequestListener {
  const table = new RouteTable<Endpoint>();
  for (const route of routes) addRoute(table, route, resources, deps);
  for (const route of additionalRoutes)
    addToTable(table, route, pathsOf(route), new Endpoint(route, false, deps));
  const unmatched: Match<Endpoint> = {
    value: new Endpoint(unmatchedRoute(table), false, deps),
    params: {},
    searchParams: {},
  };
  const malformed = new Endpoint(malformedRoute, false, deps);
  return (request, response) => {
    const match = table.find(request.method!, request.url!) ?? unmatched;
    const endpoint = match.value ?? malformed;
    void endpoint.serve(new Exchange(context, request, response, match.params, match.searchParams));
  };
}

function addRoute(
  table: RouteTable<Endpoint>,
  route: Route,
  resources: readonly ListenerResource[],
  deps: EndpointDeps,
): void {
  for (const path of pathsOf(route)) {
    const service = serviceOf(resources, path);
    if (service === 'none') continue;
    addToTable(table, route, [path], new Endpoint(route, service === 'gzip', deps));
  }
}

function addToTable(
  table: RouteTable<Endpoint>,
  { contract: { method } }: Route,
  paths: readonly string[],
  endpoint: Endpoint,
): void {
  for (const path of paths) for (const spelling of bothSpellings(path)) table.add(method, spelling, endpoint);
}

/** Answers CORS preflights, wrong methods (405) and unknown paths (404). */
function unmatchedRoute(table: RouteTable<Endpoint>): Route {
  return {
    contract: { method: 'GET', path: '*', auth: 'none' },
    handler: ({ method, url }) => {
      if (method === 'OPTIONS') return new Reply(204, undefined, { 'Access-Control-Max-Age': '86400' });
      if (table.has(url)) throw unrecognized(`The method ${method} is not supported at this path`, 405);
      throw unrecognized('Unrecognized request');
    },
  };
}

/** Refuses requests whose path is not properly percent-encoded; the table finds the value `null` for them. */
const malformedRoute: Route = {
  contract: { method: 'GET', path: '*', auth: 'none' },
  handler: () => {
    throw invalidParam('The path is not properly percent-encoded');
  },
};
