import { formatProblem } from '../kernel/config/index.ts';
import type { Logger } from '../kernel/observability/index.ts';
import { StartFailure } from '../kernel/start-failure.ts';
import { readRegistrations } from './registrations/read-registrations.ts';
import { AppserviceRegistry } from './registry.ts';

/**
 * Reads the registration files of `app_service_config_files`.
 * @throws StartFailure with all problems, when there are any
 */
export function openAppserviceRegistry(
  { serverName, log }: { readonly serverName: string; readonly log: Logger },
  files: readonly string[],
): AppserviceRegistry {
  const { registrations, errors, warnings } = readRegistrations(files);
  if (errors.length > 0) {
    const problems = errors.map(({ index, message }) =>
      formatProblem({ path: `app_service_config_files[${index}]`, message }),
    );
    throw new StartFailure(problems.join('\n'));
  }
  for (const { message } of warnings) log.warn(message);
  return new AppserviceRegistry(registrations, serverName);
}
