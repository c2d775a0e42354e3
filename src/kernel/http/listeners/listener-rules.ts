import type { RuleView } from '../../config/index.ts';
import type { ListenerConfig } from './listener-options.ts';

/** @param path place of the listener in the configuration, for example `listeners[0]` */
type ListenerRule = (listener: ListenerConfig, path: string, view: RuleView) => void;

const compressible = new Set<string>(['client', 'consent', 'metrics', 'federation']);

/** Rules between the fields of one listener. */
export const listenerRules: readonly ListenerRule[] = [
  portOrPath,
  socketMode,
  noMetricsOnSockets,
  ineffectiveOnSockets,
  ineffectiveWithoutHttp,
  compression,
];

function portOrPath({ port, path: socket }: ListenerConfig, path: string, view: RuleView): void {
  if (port !== null && socket !== null) view.error(`${path}.path`, 'cannot be given together with port');
  if (port === null && socket === null) view.error(path, 'needs a port or a path');
}

function socketMode(
  { mode, type, path: socket, resources }: ListenerConfig,
  path: string,
  view: RuleView,
): void {
  if (mode === null) return;
  if (type !== 'http') view.error(`${path}.mode`, 'needs type: http');
  if (resources.some(({ names }) => names.includes('metrics'))) {
    view.error(`${path}.mode`, 'cannot be given when metrics is among the resources');
  }
  if (socket === null) view.warn(`${path}.mode`, 'has no effect without path');
}

function noMetricsOnSockets(
  { type, path: socket, resources }: ListenerConfig,
  path: string,
  view: RuleView,
): void {
  if (socket === null) return;
  if (type === 'metrics') view.error(`${path}.type`, 'metrics cannot be served on a Unix socket');
  for (const [index, { names }] of resources.entries()) {
    const place = `${path}.resources[${index}].names`;
    if (names.includes('metrics')) view.error(place, 'metrics cannot be served on a Unix socket');
  }
}

function ineffectiveOnSockets(listener: ListenerConfig, path: string, view: RuleView): void {
  if (listener.path === null) return;
  if (listener.bind_addresses !== null) view.warn(`${path}.bind_addresses`, 'has no effect on a Unix socket');
  if (listener.tls) view.warn(`${path}.tls`, 'has no effect on a Unix socket');
}

function ineffectiveWithoutHttp(listener: ListenerConfig, path: string, view: RuleView): void {
  if (listener.type === 'http') return;
  const httpOnly = {
    tag: listener.tag !== null,
    x_forwarded: listener.x_forwarded !== null,
    resources: listener.resources.length > 0,
    additional_resources: Object.keys(listener.additional_resources).length > 0,
  };
  for (const [name, set] of Object.entries(httpOnly)) {
    if (set) view.warn(`${path}.${name}`, `has no effect with type: ${listener.type}`);
  }
}

function compression({ resources }: ListenerConfig, path: string, view: RuleView): void {
  for (const [index, { names, compress }] of resources.entries()) {
    const others = names.filter((name) => !compressible.has(name));
    if (compress && others.length > 0) {
      view.warn(`${path}.resources[${index}].compress`, `has no effect on ${others.join(', ')}`);
    }
  }
}
