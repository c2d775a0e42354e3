import { type AssignedNumbers, type DatabaseCheck, rowsCheck } from '../../kernel/database/index.ts';
import { differingCurrentState } from './current-state.ts';
import { missingExtremities, roomsWithoutExtremities } from './extremities.ts';
import { eventsWithoutGroup, roomsWithoutGroup } from './missing-groups.ts';
import { stateGroupChecks } from './state-group-checks.ts';

/**
 * Makes a check of a table whose rows belong to events. Not for `event_transactions`: the transaction id of a deleted
 * event stays stored for a day, so that a repeated request does not send the event again.
 */
const rowsOfEvents = (table: string, column: string): DatabaseCheck =>
  rowsCheck({
    problem: `rows of ${table} for events that do not exist`,
    select: `select ${column} as subject from ${table} t
      where not exists (select 1 from events e where e.nid = t.${column})`,
    mend: `delete from ${table} where not exists (select 1 from events e where e.nid = ${table}.${column})`,
  });

/** Checks that the tables of rooms agree with each other. */
export const roomChecks: readonly DatabaseCheck[] = [
  rowsCheck({
    problem: 'events of rooms that do not exist',
    select: `select event_id as subject from events e
      where not exists (select 1 from rooms r where r.room_nid = e.room_nid)`,
  }),
  rowsCheck({
    problem: 'current state whose events are missing',
    select: `select event_nid as subject from current_state c
      where not exists (select 1 from events e where e.nid = c.event_nid)
        and not exists (select 1 from outside_events o where o.nid = c.event_nid)`,
  }),
  rowsCheck({
    problem: 'current state whose keys are missing',
    select: `select key_nid as subject from current_state c
      where not exists (select 1 from state_keys k where k.nid = c.key_nid)`,
  }),
  rowsCheck({
    problem: 'memberships that differ from the current state of their room',
    select: `select k.state_key as subject from current_state c
      join state_keys k on k.nid = c.key_nid and k.type = 'm.room.member'
      left join memberships m on m.user_id = k.state_key and m.room_nid = c.room_nid
      where m.membership is null or m.membership <> c.membership`,
  }),
  rowsCheck({
    problem: 'events whose auth events are missing',
    select: `select event_nid as subject from event_auth a
      where not exists (select 1 from events e where e.nid = a.auth_nid)`,
  }),
  ...stateGroupChecks,
  eventsWithoutGroup,
  roomsWithoutGroup,
  missingExtremities,
  roomsWithoutExtremities,
  differingCurrentState,
  rowsOfEvents('event_auth', 'event_nid'),
  rowsOfEvents('event_places', 'nid'),
  rowsOfEvents('redacted_events', 'event_nid'),
];

/** The columns with assigned numbers. All numbers must be below the next numbers to assign. */
export const roomNumbers: readonly AssignedNumbers[] = [
  { bound: 'positions', table: 'events', column: 'nid' },
  { bound: 'positions', table: 'events', column: 'stream' },
  { bound: 'positions', table: 'event_places', column: 'position' },
  { bound: 'positions', table: 'memberships', column: 'stream' },
  { bound: 'positions', table: 'state_deltas', column: 'stream' },
  { bound: 'rooms', table: 'rooms', column: 'room_nid' },
  { bound: 'state_keys', table: 'state_keys', column: 'nid' },
];
