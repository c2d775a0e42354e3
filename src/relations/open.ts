import { readAccess } from '../rooms/index.ts';
import { RelatedEvents, type RelatedEventsDeps } from './related-events.ts';
import { relationRoutes } from './routes.ts';
import { ThreadList } from './thread-list.ts';

/** Opens the lists of related events and of threads, over the index that the rooms write. */
export const openRelations = (deps: RelatedEventsDeps) => ({
  routes: relationRoutes(new RelatedEvents(deps), new ThreadList(deps), readAccess(deps.engine)),
});
