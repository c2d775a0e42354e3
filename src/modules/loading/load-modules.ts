import type { Clock } from '../../kernel/clock.ts';
import { StartFailure } from '../../kernel/start-failure.ts';
import type { ModuleApi, WebHandler } from '../api/index.ts';
import { importModule } from './import-module.ts';

/** A module as the configuration names it. */
export interface ConfiguredModule {
  readonly module: string;
  readonly config: Readonly<Record<string, unknown>>;
}

/** Milliseconds in which a module has to be loaded. */
const loadTimeout = 60_000;

/** Loads a module, which registers its callbacks. @throws StartFailure that names the module */
export async function loadModule(
  { module, config }: ConfiguredModule,
  api: ModuleApi,
  clock: Clock,
): Promise<void> {
  const register = await importModule(module);
  await inTime(module, clock, async () => register(config, api));
}

/** Loads a module of `additional_resources`. @returns its handler @throws StartFailure that names the module */
export async function loadResource(
  { module, config }: ConfiguredModule,
  api: ModuleApi,
  clock: Clock,
): Promise<WebHandler> {
  const create = await importModule(module);
  const handler = await inTime(module, clock, async () => create(config, api));
  if (typeof handler === 'function') return handler as WebHandler;
  throw new StartFailure(`the module ${module} of additional_resources has not returned a handler`);
}

async function inTime(module: string, clock: Clock, load: () => Promise<unknown>): Promise<unknown> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = clock.setTimer(loadTimeout, () =>
    reject(new Error(`not loaded after ${loadTimeout / 1000} s`)),
  );
  try {
    return await Promise.race([load(), late]);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StartFailure(`the module ${module} cannot be loaded: ${reason}`, { cause: error });
  } finally {
    timer.cancel();
  }
}
