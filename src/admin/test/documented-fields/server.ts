import type { DocumentedEndpoints } from './documented-endpoint.ts';

const eventReport = 'id received_ts room_id name event_id user_id reason score sender canonical_alias';
const userReport = 'id received_ts target_user_id user_id reason';
const token = 'token uses_allowed pending completed expiry_time';
const destination = 'destination retry_last_ts retry_interval failure_ts last_successful_stream_ordering';
const notice = { body: 'user_id content{} type? state_key?', response: 'event_id' };

/**
 * The endpoints of the reference server's docs/usage/administration/admin_api, of docs/admin_api/event_reports.md, scheduled_tasks.md,
 * server_notices.md, statistics.md and version_api.md, and those about reports of users, which only its code has.
 */
export const serverEndpoints: DocumentedEndpoints = {
  'GET v1/event_reports': {
    query: 'limit? from? dir? user_id? room_id? event_sender_user_id?',
    response: `event_reports[](${eventReport}) next_token? total`,
  },
  'GET v1/event_reports/{}': { response: `${eventReport} event_json{}` },
  'DELETE v1/event_reports/{}': { response: '' },
  'GET v1/user_reports': {
    query: 'limit? from? dir? user_id? target_user_id?',
    response: `user_reports[](${userReport}) next_token? total`,
  },
  'GET v1/user_reports/{}': { response: userReport },
  'DELETE v1/user_reports/{}': { response: '' },
  'GET v1/registration_tokens': { query: 'valid?', response: `registration_tokens[](${token})` },
  'POST v1/registration_tokens/new': {
    body: 'token? uses_allowed? expiry_time? length?',
    response: token,
  },
  'GET v1/registration_tokens/{}': { response: token },
  'PUT v1/registration_tokens/{}': { body: 'uses_allowed? expiry_time?', response: token },
  'DELETE v1/registration_tokens/{}': { response: '' },
  'GET v1/federation/destinations': {
    query: 'from? limit? destination? order_by? dir?',
    response: `destinations[](${destination}) next_token? total`,
  },
  'GET v1/federation/destinations/{}': {
    response: destination,
    ours: {
      'response pending_rooms': 'number of rooms with events that wait for the destination',
      'response pending_edus': 'number of EDUs that wait for the destination',
    },
  },
  'GET v1/federation/destinations/{}/rooms': {
    query: 'from? limit? dir?',
    response: 'rooms[](room_id stream_ordering) next_token? total',
  },
  'POST v1/federation/destinations/{}/reset_connection': { response: '' },
  'GET v1/background_updates/status': {
    response: 'enabled current_updates{}(name total_item_count total_duration_ms average_items_per_ms)',
  },
  'GET v1/background_updates/enabled': { response: 'enabled' },
  'POST v1/background_updates/enabled': { body: 'enabled', response: 'enabled' },
  'POST v1/background_updates/start_job': {
    body: 'job_name old_key? before_ts?',
    response: '',
    missing: {
      'body old_key': 'belongs to the job event_resign: events are not signed again',
      'body before_ts': 'belongs to the job event_resign: events are not signed again',
    },
  },
  'GET v1/scheduled_tasks': {
    query: 'action_name? resource_id? status? job_status? max_timestamp?',
    response: 'scheduled_tasks[](id action status timestamp_ms resource_id result error)',
    ours: {
      'query limit': 'maximum number of tasks in the response',
      'query dir': 'b: the newest tasks first',
      'response scheduled_tasks[].progress': 'how far the job is, or null',
      'response scheduled_tasks[].progress.done': 'amount of work that is done, in a unit of the job',
      'response scheduled_tasks[].progress.total': 'amount of work in all, or null while it is unknown',
    },
  },
  'GET v1/statistics/users/media': {
    query: 'limit? from? order_by? from_ts? until_ts? search_term? dir?',
    response: 'users[](displayname media_count media_length user_id) next_token? total',
  },
  'GET v1/statistics/database/rooms': { response: 'rooms[](room_id estimated_size)' },
  'POST v1/send_server_notice': notice,
  'PUT v1/send_server_notice/{}': notice,
  'GET v1/server_version': { response: 'server_version' },
};
