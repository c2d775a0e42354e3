/** A module for tests, which registers what a test has put under its key. */
import type { Module, ModuleApi, WebResource } from 'hearth/module';

interface Config {
  /** Key of `registrations` or `resources`. */
  readonly key: string;
}

/** What modules register, by key. */
export const registrations = new Map<string, (api: ModuleApi, config: object) => void | Promise<void>>();

/** What additional resources answer, by key. */
export const resources = new Map<string, WebResource<object>>();

const register: Module<Config> = (config, api) => {
  const resource = resources.get(config.key);
  if (resource) return resource(config, api) as never;
  return registrations.get(config.key)?.(api, config);
};

export default register;
