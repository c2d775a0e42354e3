import type { Clock } from '../../kernel/clock.ts';
import { StartFailure } from '../../kernel/start-failure.ts';
import type { ModuleApi, WebHandler } from '../api/index.ts';
import type { ModuleContext } from '../calls/module-context.ts';
import type { MappingCallbacks } from '../logins/user-mappings.ts';
import { importModule } from './import-module.ts';

/** A module that the configuration names, with the value of its `config`. */
export interface ConfiguredModule {
  readonly module: string;
  readonly config: Readonly<Record<string, unknown>>;
}

export interface LoadDeps {
  readonly clock: Clock;
  /** Attributes the errors that a module leaves uncaught to that module. */
  readonly context: ModuleContext;
}

/** Milliseconds in which a module has to be loaded. */
const loadTimeout = 60_000;

/** Loads a module, which registers its callbacks. @throws StartFailure that names the module */
export async function loadModule(
  { module, config }: ConfiguredModule,
  api: ModuleApi,
  { clock, context }: LoadDeps,
): Promise<void> {
  await context.run({ module, callback: 'load' }, async () => {
    const register = await importModule(module, context.files);
    await inTime(module, clock, async () => register(config, api));
  });
}

/** Loads a module of `additional_resources`. @returns its handler @throws StartFailure that names the module */
export async function loadResource(
  { module, config }: ConfiguredModule,
  api: ModuleApi,
  { clock, context }: LoadDeps,
): Promise<WebHandler> {
  const handler = await context.run({ module, callback: 'load' }, async () => {
    const create = await importModule(module, context.files);
    return inTime(module, clock, async () => create(config, api));
  });
  if (typeof handler === 'function') return handler as WebHandler;
  throw new StartFailure(`the module ${module} of additional_resources has not returned a handler`);
}

/** Loads a module of `user_mapping_provider`. @returns its mapper @throws StartFailure that names the module */
export async function loadMapping(
  { module, config }: ConfiguredModule,
  api: ModuleApi,
  { clock, context }: LoadDeps,
): Promise<MappingCallbacks> {
  const mapper = await context.run({ module, callback: 'load' }, async () => {
    const create = await importModule(module, context.files);
    return inTime(module, clock, async () => create(config, api));
  });
  const { idOf, map } = Object(mapper) as Record<string, unknown>;
  if (typeof map === 'function' && (idOf === undefined || typeof idOf === 'function')) {
    return mapper as MappingCallbacks;
  }
  throw new StartFailure(`the module ${module} of user_mapping_provider has not returned a mapper of users`);
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
