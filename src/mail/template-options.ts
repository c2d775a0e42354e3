import { nullable, option, string } from '../kernel/config/index.ts';

function file(about: string, name: string) {
  return option(string({ minLength: 1 }), {
    description: `The file of the template of ${about}.`,
    default: name,
  });
}

/**
 * The options of the older way to replace templates: one folder for all templates of mail, and the name of each file in
 * it.
 */
export const templateOptions = {
  template_dir: option(nullable(string({ minLength: 1 })), {
    description:
      'A directory with your own templates of mails and of the pages that their links lead to. `templates.custom_template_directory` is searched first, the built-in templates last.',
    default: null,
  }),
  registration_template_html: file('the HTML part of the mail to a new user', 'registration.html'),
  registration_template_text: file('the text part of the mail to a new user', 'registration.txt'),
  registration_template_success_html: file(
    'the page that confirms to a new user that the address is valid',
    'registration_success.html',
  ),
  registration_template_failure_html: file(
    'the page that explains to a new user why the link is not valid',
    'registration_failure.html',
  ),
  password_reset_template_html: file('the HTML part of the mail for a password reset', 'password_reset.html'),
  password_reset_template_text: file('the text part of the mail for a password reset', 'password_reset.txt'),
  password_reset_template_success_html: file(
    'the page that says that the new password can be set',
    'password_reset_success.html',
  ),
  password_reset_template_failure_html: file(
    'the page that explains why the link for a password reset is not valid',
    'password_reset_failure.html',
  ),
  add_threepid_template_html: file(
    'the HTML part of the mail with the link for adding an address to an account',
    'add_threepid.html',
  ),
  add_threepid_template_text: file(
    'the text part of the mail with the link for adding an address to an account',
    'add_threepid.txt',
  ),
  add_threepid_template_success_html: file(
    'the page that says that an address is valid and can be added to an account',
    'add_threepid_success.html',
  ),
  add_threepid_template_failure_html: file(
    'the page that explains why the link for adding an address is not valid',
    'add_threepid_failure.html',
  ),
  already_in_use_template_html: file(
    'the HTML part of the mail to an address that has an account already',
    'already_in_use.html',
  ),
  already_in_use_template_text: file(
    'the text part of the mail to an address that has an account already',
    'already_in_use.txt',
  ),
};
