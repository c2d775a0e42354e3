import { isDeepStrictEqual } from 'node:util';
import type { Logger } from '../../kernel/observability/index.ts';
import { readRegistrations } from './read-registrations.ts';
import type { Registration } from './registration.ts';

/**
 * Compares the registration files with the running registrations, and logs the services that a restart would add, change or
 * remove. Does nothing when a file has mistakes, because the check of the configuration reports these.
 */
export function reportChangedRegistrations(
  log: Logger,
  files: readonly string[],
  running: readonly Registration[],
): void {
  const { registrations, errors } = readRegistrations(files);
  if (errors.length > 0) return;
  const [before, after] = [byId(running), byId(registrations)];
  const services = [...new Set([...before.keys(), ...after.keys()])].filter(
    (id) => !isDeepStrictEqual(before.get(id), after.get(id)),
  );
  if (services.length === 0) return;
  log.warn(
    { services },
    'The registration files of application services have changed: restart the server to apply the changes',
  );
}

const byId = (registrations: readonly Registration[]) =>
  new Map(registrations.map((registration) => [registration.id, registration]));
