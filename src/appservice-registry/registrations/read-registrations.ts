import {
  type ConfigurationSource,
  Findings,
  formatProblem,
  loadConfiguration,
  readSourceFiles,
  type SectionType,
} from '../../kernel/config/index.ts';
import { collisionsBetween } from './collisions.ts';
import type { Registration } from './registration.ts';
import type { RegistrationFile, RegistrationProblem } from './registration-file.ts';
import { registrationSection } from './registration-options.ts';

/** The result of `readRegistrations`. */
export interface ReadRegistrations {
  /** The registrations of files without mistakes of their own. */
  readonly registrations: readonly Registration[];
  readonly errors: readonly RegistrationProblem[];
  readonly warnings: readonly RegistrationProblem[];
}

/** Reads and checks registration files, and compares them with each other. Reports all mistakes at once. */
export function readRegistrations(files: readonly string[]): ReadRegistrations {
  const errors: RegistrationProblem[] = [];
  const valid: RegistrationFile[] = [];
  for (const [index, file] of files.entries()) {
    const findings = new Findings();
    const sources = readSourceFiles([file], findings).sources;
    for (const { message } of findings.errors) errors.push({ index, message });
    for (const source of sources) {
      const { registration, problems } = readRegistration(source);
      if (problems.length > 0) errors.push(...problems.map((message) => ({ index, message })));
      else valid.push({ index, file: source.file, registration: registration() });
    }
  }
  const collisions = collisionsBetween(valid);
  return {
    registrations: valid.map(({ registration }) => registration),
    errors: [...errors, ...collisions.errors],
    warnings: collisions.warnings,
  };
}

/** Reads and checks one file. `registration` may be called only when there are no problems. */
function readRegistration(source: ConfigurationSource) {
  const { values, errors } = loadConfiguration([source], { registration: registrationSection });
  return { registration: () => toRegistration(values.registration), problems: errors.map(formatProblem) };
}

function toRegistration(values: SectionType<typeof registrationSection>): Registration {
  const { namespaces } = values;
  return {
    id: values.id,
    url: values.url ? values.url.replace(/\/+$/, '') : undefined,
    asToken: values.as_token,
    hsToken: values.hs_token,
    senderLocalpart: values.sender_localpart,
    users: namespaces.users ?? [],
    aliases: namespaces.aliases ?? [],
    rooms: namespaces.rooms ?? [],
    rateLimited: values.rate_limited ?? true,
    receivesEphemeral:
      values.receive_ephemeral === true ||
      values.push_ephemeral ||
      values['de.sorunome.msc2409.push_ephemeral'],
    receivesDeviceChanges: values['org.matrix.msc3202'],
    managesDevices: values['io.element.msc4190'],
    protocols: values.protocols ?? [],
  };
}
