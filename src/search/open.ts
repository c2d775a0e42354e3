import type { Rooms } from '../rooms/index.ts';
import { searchRoutes } from './routes.ts';
import { Search } from './search.ts';
import { SearchIndex, type SearchIndexDeps } from './search-index.ts';

export interface OpenSearchDeps extends Omit<SearchIndexDeps, 'engine'> {
  readonly rooms: Rooms;
  /** Without `enable_search`, nothing is indexed, and searches are refused. */
  readonly options: { readonly enable_search: boolean };
}

/** Opens search and starts to index events. */
export async function openSearch(deps: OpenSearchDeps) {
  const { rooms, options, clock } = deps;
  if (!options.enable_search) return { routes: searchRoutes(undefined) };
  const index = new SearchIndex({ ...deps, engine: rooms.engine });
  await index.start();
  return { routes: searchRoutes(new Search({ rooms, index, clock })), stop: () => index.stop() };
}
