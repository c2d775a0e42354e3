import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Kysely, sql } from 'kysely';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { ann, ben, cat, ReferenceRoom } from '../../../test/support/rooms/reference-room.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { type Database, migrate } from '../../kernel/database/index.ts';
import { EventFlag, type RoomTables } from '../tables.ts';
import { redactionsWithoutEffectMigration } from './redactions-without-effect.ts';

const withheld = sql.lit(EventFlag.withheld);

/** Reads the rows that decide which redactions clients see and which redactions `/timestamp_to_event` finds. */
async function storedRedactions(database: Database) {
  const tables = database.reader<RoomTables>();
  const events = await tables.selectFrom('events').select(['event_id', 'flags']).orderBy('nid').execute();
  const times = await tables.selectFrom('event_times').select('nid').orderBy('nid').execute();
  const pending = await tables
    .selectFrom('pending_redactions')
    .selectAll()
    .orderBy('redaction_nid')
    .execute();
  return { events, times, pending };
}

/** Brings a database into the form in which an older server left it, which did not withhold redactions from clients. */
async function forgetWithheld(database: Database): Promise<void> {
  await database.changeSchema(async ({ db }) => {
    const tables = db as unknown as Kysely<never>;
    await sql`
      insert into event_times (room_nid, ts, nid)
      select room_nid, 1, nid from events where (flags & ${withheld}) <> 0`.execute(tables);
    await sql`update events set flags = flags - ${withheld} where (flags & ${withheld}) <> 0`.execute(tables);
    await sql`delete from schema_migrations where name = ${redactionsWithoutEffectMigration.name}`.execute(
      tables,
    );
  });
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('the migration rooms/0014-redactions-without-effect', () => {
    for (const version of ['10', '11']) {
      it(`withholds from clients the redactions that have no effect, in a database of an older server and room version ${version}`, async () => {
        const fixture = await RoomsUnderTest.open(open);
        const { engine, database } = fixture;
        const [room, otherRoom] = [new ReferenceRoom(version), new ReferenceRoom(version)];
        const joins = [room, otherRoom].map((reference) => ({ reference, join: reference.join(alice) }));
        for (const { reference, join } of joins) await engine.placement.enter(reference.room, join);
        const names = new Map<string, string>();
        const place = async (eventId: string, name?: string) => {
          await engine.placement.place(room.roomId, room.get(eventId));
          if (name !== undefined) names.set(eventId, name);
          return eventId;
        };
        const say = (sender: string) => place(room.say(sender));
        const redact = (name: string, sender: string, redacts?: string) => {
          const target = redacts === undefined ? {} : { redacts };
          return place(room.add({ type: 'm.room.redaction', sender, ...target, content: target }), name);
        };
        await place(room.member(cat, 'join'));
        const elsewhere = otherRoom.say(ann);
        await engine.placement.place(otherRoom.roomId, otherRoom.get(elsewhere));
        const target = await say(ann);
        await redact('by another user without power', cat, target);
        await redact('by a moderator', ben, target);
        await redact('by the sender of the target, again', ann, target);
        await redact('by another user without power, again', cat, target);
        await redact('of the create event', ann, [...room.events.keys()][0]!);
        await redact('of an event of another room', ann, elsewhere);
        await redact('of nothing', ann);
        await redact('of an unknown event', ann, '$unknown');
        const levels = (users: Record<string, number>) =>
          room.add({ type: 'm.room.power_levels', sender: ann, stateKey: '', content: { users } });
        await place(levels({ [ann]: 100, [ben]: 50, [cat]: 50 }));
        const [first, second] = [await say(ann), await say(ann)];
        await redact('by a user who has power', cat, first);
        await redact('by a user who has power, again', cat, first);
        await place(levels({ [ann]: 100, [ben]: 50 }));
        await redact('by a user who had power', cat, second);
        await place(room.say(cat));

        const before = await storedRedactions(database);
        const hidden = before.events.filter(({ flags }) => (flags & EventFlag.withheld) !== 0);
        assert.deepEqual(
          hidden.map(({ event_id: eventId }) => names.get(eventId)),
          [
            'by another user without power',
            'by another user without power, again',
            'of the create event',
            'of an event of another room',
            'of nothing',
            'of an unknown event',
            'by a user who had power',
          ],
        );
        await fixture.rooms.incoming.close();
        await engine.close();
        await forgetWithheld(database);
        await migrate(database, RoomsUnderTest.migrations);
        assert.deepEqual(await storedRedactions(database), before);
      });
    }
  });
});
