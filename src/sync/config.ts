import { integer, list, option, roomId, section } from '../kernel/config/index.ts';

/** Options about the content of syncs. */
export const syncSection = section({
  title: 'Sync',
  options: {
    filter_timeline_limit: option(integer({ minimum: -1 }), {
      description:
        'The maximum number of events in one timeline of a response, whatever its filter requests. -1 sets no limit.',
      default: 100,
      unit: 'events',
    }),
    exclude_rooms_from_sync: option(list(roomId()), {
      description: 'Rooms that are left out of every sync.',
      default: [],
    }),
  },
});
