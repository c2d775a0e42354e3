import type { Migration } from '../../kernel/database/index.ts';

/** Adds indexes of forgotten rooms, of events without a place, and of the positions of events. */
export const forgottenRoomsMigration: Migration = {
  name: 'rooms/0009-forgotten-rooms',
  async up({ db }) {
    await db.schema
      .createIndex('memberships_forgotten')
      .on('memberships')
      .column('room_nid')
      .where('forgotten' as never, '=', 1 as never)
      .execute();
    await db.schema
      .createIndex('events_without_place')
      .on('events')
      .column('room_nid')
      .where('stream' as never, 'is', null)
      .execute();
    await db.schema.createIndex('event_places_by_nid').on('event_places').column('nid').execute();
  },
};
