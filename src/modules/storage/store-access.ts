import type { ModuleStore, StoreAccess } from '../api/index.ts';
import type { ModuleContext } from '../calls/module-context.ts';
import type { ModuleStores } from './module-store.ts';

/** Returns the stores as a module uses them. @param module its name in the configuration */
export const storeAccess = (module: string, stores: ModuleStores, context: ModuleContext): StoreAccess => ({
  open: (name, migrations = []) =>
    context.leave(async () => {
      const wrapped = migrations.map((migration) => ({
        name: migration.name,
        up: (store: ModuleStore) =>
          context.run({ module, callback: `migration ${migration.name}` }, () =>
            migration.up(storeOf(module, store, context)),
          ),
      }));
      return storeOf(module, await stores.open(name, wrapped), context);
    }),
});

/** Returns a store whose work is not attributed to the module. */
const storeOf = (module: string, store: ModuleStore, context: ModuleContext): ModuleStore => ({
  get: (key) => context.leave(() => store.get(key)),
  set: (key, value) => context.leave(() => store.set(key, value)),
  delete: (key) => context.leave(() => store.delete(key)),
  write: (changes) => context.leave(() => store.write(changes)),
  list: (query) => context.leave(() => store.list(query)),
  update: (key, change) =>
    context.leave(() =>
      store.update(key, (value) => context.run({ module, callback: 'update' }, () => change(value))),
    ),
});
