import type { DocumentedEndpoints } from './documented-endpoint.ts';

const room = `
  room_id name canonical_alias joined_members joined_local_members version creator encryption federatable public
  join_rules guest_access history_visibility state_events room_type`;

const deletionBody = 'new_room_user_id? room_name? message? block? purge? force_purge?';
const shutdown = 'kicked_users[] failed_to_kick_users[] local_aliases[] new_room_id';
const deletion = `delete_id room_id status error? shutdown_room(${shutdown})`;

/**
 * The endpoints of the reference server's docs/admin_api/rooms.md, room_membership.md, purge_history_api.md and
 * fetch_event.md. Where these documents say that an endpoint is like an endpoint of the client-server API, the fields
 * come from the specification.
 */
export const roomEndpoints: DocumentedEndpoints = {
  'GET v1/rooms': {
    query: 'from? limit? order_by? dir? search_term? public_rooms? empty_rooms?',
    // An example of the documentation has `next_token`; its text and the code of the reference server have `next_batch`.
    response: `rooms[](${room}) offset total_rooms next_batch? prev_batch?`,
  },
  'GET v1/rooms/{}': {
    response: `${room} topic avatar joined_local_devices forgotten tombstoned replacement_room`,
  },
  'DELETE v1/rooms/{}': { body: deletionBody, response: shutdown },
  'DELETE v2/rooms/{}': { body: deletionBody, response: 'delete_id' },
  'GET v2/rooms/{}/delete_status': { response: `results[](${deletion})` },
  'GET v2/rooms/delete_status/{}': { response: deletion },
  'GET v1/rooms/{}/members': { response: 'members[] total' },
  'GET v1/rooms/{}/state': { query: 'type?', response: 'state[]' },
  'GET v1/rooms/{}/messages': {
    query: 'from to? limit? filter? dir?',
    response: 'chunk[] start end? state[]?',
  },
  'GET v1/rooms/{}/timestamp_to_event': { query: 'ts dir?', response: 'event_id origin_server_ts' },
  'GET v1/rooms/{}/block': { response: 'block user_id?' },
  'PUT v1/rooms/{}/block': { body: 'block', response: 'block' },
  'POST v1/rooms/{}/make_room_admin': { body: 'user_id?', response: '' },
  'GET v1/rooms/{}/forward_extremities': {
    response: 'count results[](event_id state_group depth received_ts)',
  },
  'DELETE v1/rooms/{}/forward_extremities': { response: 'deleted' },
  'GET v1/rooms/{}/context/{}': {
    query: 'limit? filter?',
    response: 'start end event{} events_before[] events_after[] state[]',
  },
  'GET v1/rooms/{}/hierarchy': {
    query: 'from? limit? max_depth?',
    response: `
      rooms[](
        room_id room_version name? topic? canonical_alias? avatar_url? room_type? join_rule num_joined_members
        guest_can_join world_readable encryption? children_state[](type state_key sender origin_server_ts content{}))
      next_batch?`,
    ours: { 'response rooms[].allowed_room_ids[]': 'rooms whose members may join, as in the specification' },
  },
  'POST v1/join/{}': { query: 'server_name?', body: 'user_id', response: 'room_id' },
  'POST v1/purge_history/{}': {
    body: 'delete_local_events? purge_up_to_event_id? purge_up_to_ts?',
    response: 'purge_id',
  },
  'POST v1/purge_history/{}/{}': { body: 'delete_local_events?', response: 'purge_id' },
  'GET v1/purge_history_status/{}': {
    response: 'status error?',
    ours: {
      'response progress': 'how far the purge is',
      'response progress.done': 'number of depths whose events the purge has processed',
      'response progress.total': 'number of depths whose events the purge processes',
    },
  },
  'GET v1/fetch_event/{}': { response: 'event{}' },
};
