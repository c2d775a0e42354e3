import { Filters, type FiltersDeps } from './filters.ts';
import { filterRoutes } from './routes.ts';

/** Opens stored filters. */
export function openFilters(deps: FiltersDeps) {
  const filters = new Filters(deps);
  return { filters, routes: filterRoutes(filters) };
}
