/** A module for tests of a server in its own process: it throws errors that no code catches. */
import { EventEmitter } from 'node:events';
import type { Module } from 'hearth/module';

interface Config {
  readonly greeting: string;
}

/** What the web resource does before it answers, by the path of the request. */
const mistakes: Readonly<Record<string, () => void>> = {
  timer: () => void setTimeout(() => fail('timer')),
  promise: () => void Promise.reject(new Error('careless promise')),
  text: () => void Promise.reject('careless text'),
  emitter: () => void setImmediate(() => new EventEmitter().emit('error', new Error('careless emitter'))),
};

function fail(what: string): never {
  throw new Error(`careless ${what}`);
}

const careless: Module<Config> = ({ greeting }, api) => {
  api.registerWebResource('/_synapse/client/careless', ({ path }) => {
    mistakes[path]?.();
    return { body: { greeting } };
  });
};

export default careless;
