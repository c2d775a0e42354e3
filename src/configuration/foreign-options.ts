const experiments =
  'enables experimental features of other server software, which Hearth does not have: delete it. Features that have been released need no option';
const workers = 'is about workers; Hearth runs as one process: delete it';
const workerFile =
  'belongs to the configuration file of a worker; Hearth runs as one process: start it once, without these files';
const modules =
  'configures modules of other server software; Hearth loads modules in JavaScript with the option modules, see docs/modules.md';
const obsolete = 'is obsolete and has no effect: delete it';
const mediaBackup =
  'is not read; write media_storage_providers: [{ module: file_system, store_local: true, store_remote: true, store_synchronous: …, config: { directory: … } }]';
const metricsListener = 'is not read; write a listener with type: metrics';
const messageRate = 'is not read; write rc_message: { per_second: …, burst_count: … }';
const federationRate = (member: string) => `is not read; write rc_federation: { ${member}: … }`;

/** Options of other homeservers that Hearth does not have or does not need, and what to do about each. */
export const foreignOptions: ReadonlyMap<string, string> = new Map([
  ['experimental_features', experiments],
  ['redis', workers],
  ['instance_map', workers],
  ['stream_writers', workers],
  ['outbound_federation_restricted_to', workers],
  ['send_federation', workers],
  ['federation_sender_instances', workers],
  ['start_pushers', workers],
  ['pusher_instances', workers],
  ['notify_appservices', workers],
  ['notify_appservices_from_worker', workers],
  ['update_user_directory', workers],
  ['update_user_directory_from_worker', workers],
  ['media_instance_running_background_jobs', workers],
  ['run_background_tasks_on', workers],
  ['worker_app', `${workers} here, and do not start Hearth with the configuration files of workers`],
  ['worker_name', workerFile],
  ['worker_listeners', workerFile],
  ['worker_daemonize', workerFile],
  ['worker_pid_file', workerFile],
  ['worker_log_config', workerFile],
  ['worker_manhole', workerFile],
  ['worker_main_http_uri', workerFile],
  ['worker_replication_host', workerFile],
  ['worker_replication_port', workerFile],
  ['worker_replication_http_port', workerFile],
  ['worker_replication_secret_path', workers],
  ['background_updates', 'is not needed, Hearth limits its background work by itself: delete it'],
  [
    'auto_accept_invites',
    'is not known to Hearth: users accept invites themselves, or an application service does it for its users; delete it',
  ],
  ['password_providers', modules],
  ['spam_checker', modules],
  ['third_party_event_rules', modules],
  ['account_validity', modules],
  ['use_account_validity_in_account_status', modules],
  ['enable_group_creation', obsolete],
  ['group_creation_prefix', obsolete],
  ['trust_identity_server_for_password_resets', obsolete],
  ['trusted_third_party_id_servers', obsolete],
  ['expire_access_token', obsolete],
  ['cleanup_extremities_with_dummy_events', obsolete],
  ['captcha_bypass_secret', obsolete],
  ['invite_3pid_guest', obsolete],
  ['web_client', `${obsolete}; see web_client_location`],
  ['no_tls', `${obsolete}; see tls of each listener`],
  ['bind_port', `${obsolete}; see listeners`],
  ['bind_host', `${obsolete}; see listeners`],
  ['unsecure_port', `${obsolete}; see listeners`],
  ['metrics_port', metricsListener],
  ['metrics_bind_host', metricsListener],
  ['gzip_responses', 'is not read; see compress of the resources of a listener'],
  ['disable_registration', 'is not read; see enable_registration'],
  [
    'restrict_public_rooms_to_local_users',
    'is not read; see allow_public_rooms_without_auth and allow_public_rooms_over_federation',
  ],
  ['database_path', 'is not read; write database: { name: sqlite3, args: { database: … } }'],
  ['backup_media_store_path', mediaBackup],
  ['synchronous_backup_media_store', mediaBackup],
  ['tls_fingerprints', obsolete],
  ['tls_dh_params_path', obsolete],
  ['acme', `${obsolete}; see tls_certificate_path, for a certificate that another program renews`],
  ['access_token_lifetime', 'is not known to Hearth; see nonrefreshable_access_token_lifetime'],
  ['saml2_enabled', `${obsolete}; see saml2_config`],
  ['enable_ephemeral_messages', 'is not known to Hearth: delete it; see retention'],
  ['synctl_cache_factor', 'is not read; see caches.global_factor'],
  ['log_file', 'is not read; see log_config'],
  ['verbose', 'is not read; see log_config'],
  ['rc_messages_per_second', messageRate],
  ['rc_message_burst_count', messageRate],
  ['federation_rc_window_size', federationRate('window_size')],
  ['federation_rc_sleep_limit', federationRate('sleep_limit')],
  ['federation_rc_sleep_delay', federationRate('sleep_delay')],
  ['federation_rc_reject_limit', federationRate('reject_limit')],
  ['federation_rc_concurrent', federationRate('concurrent')],
  [
    'room_invite_state_types',
    'is not read; write room_prejoin_state: { disable_default_event_types: true, additional_event_types: […] }',
  ],
  ['uploads_path', 'is not needed, unfinished uploads are below media_store_path: delete it'],
  ['cpu_affinity', 'is not read; set CPUAffinity in the systemd unit, or use taskset'],
  ['extras', 'names optional packages of other server software, which Hearth does not need: delete it'],
]);
