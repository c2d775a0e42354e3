/** A module for tests. It calls the function that a test has stored under the key of its configuration. */
import type { Module, ModuleApi, WebResource } from 'hearth/module';

interface Config {
  /** Key of `registrations` or `resources`. */
  readonly key: string;
}

/** Functions that register the callbacks of a module, by key. */
export const registrations = new Map<string, (api: ModuleApi, config: object) => void | Promise<void>>();

/** Web resources that a listener serves for the module (`additional_resources`), by key. */
export const resources = new Map<string, WebResource<object>>();

const register: Module<Config> = (config, api) => {
  const resource = resources.get(config.key);
  if (resource) return resource(config, api) as never;
  return registrations.get(config.key)?.(api, config);
};

export default register;
