import { integer, list, option, roomId, section } from '../kernel/config/index.ts';

/** Options about the content of syncs. */
export const syncSection = section({
  title: 'Sync',
  options: {
    filter_timeline_limit: option(integer({ minimum: -1 }), {
      description:
        'The maximum number of events in a timeline or page of a response, whatever the request and its filter say. -1 stands for 1,000.',
      default: 100,
      unit: 'events',
    }),
    exclude_rooms_from_sync: option(list(roomId()), {
      description: 'Rooms that are left out of every sync.',
      default: [],
    }),
  },
});
