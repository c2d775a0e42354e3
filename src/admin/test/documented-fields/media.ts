import type { DocumentedEndpoints } from './documented-endpoint.ts';

const deleted = 'deleted_media[] total';
const deletionQuery = 'before_ts size_gt? keep_profiles?';

/** The endpoints of the reference server's docs/admin_api/media_admin_api.md. */
export const mediaEndpoints: DocumentedEndpoints = {
  'GET v1/room/{}/media': { response: 'local[] remote[]' },
  'GET v1/media/{}/{}': {
    response: `
      media_info(media_origin user_id media_id media_type media_length upload_name created_ts filesystem_id url_cache
        last_access_ts quarantined_by authenticated safe_from_quarantine sha256)`,
  },
  'DELETE v1/media/{}/{}': { response: deleted },
  'POST v1/media/quarantine/{}/{}': { response: '' },
  'POST v1/media/unquarantine/{}/{}': { response: '' },
  'POST v1/room/{}/media/quarantine': { response: 'num_quarantined' },
  'POST v1/quarantine_media/{}': { response: 'num_quarantined' },
  'POST v1/user/{}/media/quarantine': { response: 'num_quarantined' },
  'GET v1/media/quarantine_changes': {
    query: 'from?',
    response: 'next_batch changes[](origin media_id quarantined)',
  },
  'POST v1/media/protect/{}': { response: '' },
  'POST v1/media/unprotect/{}': { response: '' },
  'POST v1/media/delete': { query: deletionQuery, response: deleted },
  'POST v1/media/{}/delete': { query: deletionQuery, response: deleted },
  'POST v1/purge_media_cache': { query: 'before_ts', response: 'deleted' },
};
