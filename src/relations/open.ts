import { readAccess } from '../rooms/index.ts';
import { RelatedEvents, type RelatedEventsDeps } from './related-events.ts';
import { relationRoutes } from './routes.ts';
import { ThreadList } from './thread-list.ts';

/** Opens the lists of related events and of threads. They read the index of relations that `rooms` writes. */
export const openRelations = (deps: RelatedEventsDeps) => ({
  routes: relationRoutes(new RelatedEvents(deps), new ThreadList(deps), readAccess(deps.engine)),
});
