import { integer, list, option, roomId, section } from '../kernel/config/index.ts';

/** What clients are told when they sync. */
export const syncSection = section({
  title: 'Sync',
  options: {
    filter_timeline_limit: option(integer({ minimum: -1 }), {
      description:
        'The most events that one timeline of an answer holds, whatever its filter asks for. -1 sets no limit.',
      default: 100,
      unit: 'events',
    }),
    exclude_rooms_from_sync: option(list(roomId()), {
      description: 'Rooms that no sync mentions.',
      default: [],
    }),
  },
});
